APPS += load
load_LDFLAGS = -lm
# In the guest it lives beside the server, which has the usual 0x400000.
build/apps/load: load_LDFLAGS = -no-pie -Wl,-Ttext-segment=0x40000000 -lm
