"""How many file descriptors this process, and the servers that it starts, may have."""

import resource


def raise_to_hard():
    """Takes what the system allows: its default for programs (1024) is less than tests of many connections need."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError):
        pass    # an unlimited hard limit beyond the system's own: what there is has to do


def allowed(want):
    """True if `want` descriptors can be had at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft == resource.RLIM_INFINITY or soft >= want
