"""What scripts/weir is made of: command line, machine, accelerator, guest, QMP."""
