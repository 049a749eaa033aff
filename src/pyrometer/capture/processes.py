"""Child processes: not profiled, but not passed over in silence either."""

forks = 0
"""How often this process has forked while recording."""

_cpu_before_s = 0.0


def begin() -> None:
    """From now on children count: ones from before may be our own, or the parent's."""
    global forks, _cpu_before_s
    forks = 0
    _cpu_before_s = 0.0
    _cpu_before_s = children_cpu_s()


def children_cpu_s() -> float:
    """The CPU time of children that have ended since."""
    import resource

    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime - _cpu_before_s
