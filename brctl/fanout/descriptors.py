"""Room for one socket per node in flight."""

import resource


def raise_descriptor_limit() -> tuple[int, int]:
    """Raise this process's limit of open files to the hard limit.

    Returns:
        The limit before and after; equal when there was nothing to raise.
    """
    before, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # An unlimited hard limit would make programs that close every descriptor at start take minutes.
    after = 1 << 16 if hard == resource.RLIM_INFINITY else min(hard, 1 << 16)
    if after <= before:
        return before, before
    resource.setrlimit(resource.RLIMIT_NOFILE, (after, hard))
    return before, after
