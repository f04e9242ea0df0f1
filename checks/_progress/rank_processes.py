"""RUNS ON THE NODE. Which process is which rank of a job that brctl did not start; changes nothing.

Launchers tell a rank who it is by its environment. Its children inherit that: the rank is the one
whose parent is none.
"""

import os

ENVIRONMENT_LIMIT = 256 << 10
NAMES = (
    ("RANK", "WORLD_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
)


def rank_processes(world_size):
    """{rank: pid} of processes here whose environment says that they are one of so many ranks."""
    ranks = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            rank = rank_of(environment_of(int(name)), world_size)
            if rank is not None:
                ranks[int(name)] = rank
    return {
        rank: pid
        for pid, rank in sorted(ranks.items(), reverse=True)
        if ranks.get(parent_of(pid)) != rank
    }


def environment_of(pid):
    """What a process was started with, as {name: value}; empty where that may not be read."""
    try:
        with open("/proc/%d/environ" % pid, "rb") as stream:
            raw = stream.read(ENVIRONMENT_LIMIT)
    except OSError:
        return {}
    pairs = [entry.partition(b"=") for entry in raw.split(b"\0") if b"=" in entry]
    return {k.decode("utf-8", "replace"): v.decode("utf-8", "replace") for k, _, v in pairs}


def rank_of(environment, world_size):
    """The rank an environment names in a job of this size; a job of another size is another job."""
    for rank, size in NAMES:
        number, of = environment.get(rank, ""), environment.get(size, "")
        if number.isdigit() and of.isdigit() and (not world_size or int(of) == world_size):
            return int(number)
    return None


def parent_of(pid):
    try:
        with open("/proc/%d/stat" % pid) as stream:
            return int(stream.read().rsplit(")", 1)[1].split()[1])
    except (OSError, ValueError, IndexError):
        return 0
