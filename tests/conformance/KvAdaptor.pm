# Loaded before memcached's own tests: what they ask of a debug build of memcached is done otherwise.
package KvAdaptor;
use strict;
use warnings;
use Time::HiRes ();
use MemcachedTest;

# `debugtime` moves the clock of a debug build. Here time passes by itself.
no warnings 'redefine';
*MemcachedTest::mem_move_time = sub {
    my ($sock, $seconds) = @_;
    Time::HiRes::sleep($seconds + 0.1);
};

1;
