"""Faults of a live job that nobody has rehearsed, for measuring: what is right of each.

Written without a look at how brctl concludes. What is right was written down, and a coin chose what
is set aside, before any of them had run. What makes them bite is of this machine alone: control
groups, the ends of cables, a relay in a cable, a file system of a node's own.
"""

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from brctl.lab.cluster import Lab, boot
from brctl.lab.files import reset_node
from brctl.lab.namespaces import run_ip
from brctl.lab.processes import is_alive
from brctl.lab.record import TAG_VARIABLE
from brctl.lab.site import write_clock
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.scenarios.fleet_incidents import RAISED
from tests.scenarios.live_incidents import (
    ALL,
    CULPRIT,
    HANGS,
    NETWORK,
    OTHER,
    STRAGGLER,
    Deed,
    LiveIncident,
    both,
    inside,
    mischief,
    signal_to,
    site,
    undone_by_a_new_start,
)
from tests.scenarios.outside_incidents import SOUND, _pid_inside, ranks_on

FIRST, FIRST_RANK = "n1", 0
LAST, LAST_RANK = "n4", 3
OTHER_RANK = 1
PATIENCE_S = 40.0
GROUPS = Path("/sys/fs/cgroup")


def _await(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not what():
        assert time.monotonic() < deadline, "it does not come to pass"
        time.sleep(0.05)


def pause(seconds: float) -> Deed:
    return lambda _: time.sleep(seconds)


def saving_for(seconds: float) -> Deed:
    """Wait until rank 0 has been busy with a checkpoint for so long: then somebody looks."""

    def make(lab: Lab) -> None:
        progress = lab.paths.work / "progress" / "rank-00000.json"

        def is_so() -> bool:
            told = json.loads(progress.read_text())
            busy_s = time.time() - float(told["phase_since"])
            return bool(told["phase"] == "checkpoint" and busy_s > seconds)

        _await(is_so)

    return make


def forget_kernel_log(node: str) -> Deed:
    """Healing gives a new log to those nodes alone that `lab break` broke."""
    return lambda lab: reset_node(lab.record, lab.paths, node)


# Control groups: what a container or a scheduler lets a process have.


def _group(lab: Lab, controller: str) -> Path:
    """One of our own below the one that we are in, where a test that breaks off finds it."""
    rows = [row.split(":", 2) for row in Path("/proc/self/cgroup").read_text().splitlines()]
    own = [path for _, names, path in rows if controller in names.split(",")]
    if not own or not (GROUPS / controller).is_dir():
        pytest.skip(f"no control groups of {controller} can be made here")
    return GROUPS / controller / own[0].lstrip("/") / f"lab-{lab.record.tag}"


def held(controller: str, node: str, limits: Mapping[str, str], *, loader: bool = False) -> Deed:
    """The rank of a node, or its loader alone, gets into a group that has limits."""

    def make(lab: Lab) -> None:
        group = _group(lab, controller)
        group.mkdir(exist_ok=True)
        for pid in [site(lab, node).loader()] if loader else ranks_on(lab, node):
            (group / "cgroup.procs").write_text(str(pid))
        for name, value in limits.items():
            (group / name).write_text(value)

    return make


def let_go(controller: str) -> Deed:
    """Whoever is left in the group goes back, running, and the group is gone."""

    def make(lab: Lab) -> None:
        group = _group(lab, controller)
        if not group.exists():
            return
        if controller == "freezer":
            (group / "freezer.state").write_text("THAWED")
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        _await(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()

    return make


SLIVER = {"cpu.cfs_period_us": "50000", "cpu.cfs_quota_us": "3000"}
"""A sixteenth of a core, a twentieth of a second at a time."""

CRUMBS = {"cpu.cfs_period_us": "400000", "cpu.cfs_quota_us": "1000"}
SOME_MEMORY = {"memory.limit_in_bytes": "96M"}
FROZEN = {"freezer.state": "FROZEN"}


def killed_by_its_limit(lab: Lab) -> None:
    """A rank whose memory grows in a group with little of it; its kernel tells of what it did.

    All nodes have one kernel here and each a log of its own, so what it says is carried over, with
    the process as the node knows it.
    """
    (rank,) = ranks_on(lab, LAST)
    inner = _pid_inside(rank)
    held("memory", LAST, SOME_MEMORY)(lab)
    mischief("leaks", "forward", (LAST_RANK,))(lab)
    _await(lambda: not is_alive(rank))
    told = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    mine = [row.partition("] ")[2] for row in told.splitlines() if _names_the_killed(row, rank)]
    site(lab, LAST).log_kernel(*(row.replace(str(rank), inner) for row in mine[-2:]))


def _names_the_killed(row: str, pid: int) -> bool:
    return f"Killed process {pid} " in row or row.endswith(f",pid={pid},uid=0")


def few_descriptors(lab: Lab) -> None:
    """Somebody lowers how many files a running rank may have open; it has more."""
    for pid in ranks_on(lab):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (3, 3))


# Cables: what lies between nodes and belongs to none.

RELAY = """
import fcntl, heapq, itertools, os, random, select, struct, sys, time

def tap(name):
    handle = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(handle, 0x400454CA, struct.pack("16sH22x", name.encode(), 0x1002))
    return handle

least_s, most_s = map(float, sys.argv[3:5])
ends = tap(sys.argv[1]), tap(sys.argv[2])
other = dict(zip(ends, reversed(ends)))
under_way, number = [], itertools.count()
print("ready", flush=True)
while True:
    wait_s = max(0.0, under_way[0][0] - time.monotonic()) if under_way else None
    for end in select.select(ends, [], [], wait_s)[0]:
        due = time.monotonic() + random.uniform(least_s, most_s)
        heapq.heappush(under_way, (due, next(number), other[end], os.read(end, 65536)))
    while under_way and under_way[0][0] <= time.monotonic():
        _, _, end, frame = heapq.heappop(under_way)
        try:
            os.write(end, frame)
        except OSError:
            pass
"""
"""Hands on frames between two taps, each after a while of its own: late, and out of order."""


class _Relay:
    """A far and shaky path in a node's cable: our kernel has no discipline that delays."""

    def __init__(self, node: str, least_ms: float, most_ms: float) -> None:
        self._node = node
        self._times = [str(least_ms / 1000), str(most_ms / 1000)]
        self._running: subprocess.Popen[bytes] | None = None

    def insert(self, lab: Lab) -> None:
        record = lab.record
        own = record.interface(self._node)
        if not Path("/dev/net/tun").exists():
            pytest.skip("no tap can be made here")
        command = [sys.executable, "-c", RELAY, f"{own}-a", f"{own}-b", *self._times]
        environment = {**os.environ, TAG_VARIABLE: record.tag}
        self._running = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
        assert self._running.stdout is not None
        assert self._running.stdout.readline() == b"ready\n"
        run_ip(record, (
            f"link add {own}-x type bridge", f"link set {own}-x up",
            f"link set {own}-a master {own}-x up", f"link set {own} master {own}-x",
            f"link set {own}-b master {record.bridge} up",
        ))  # fmt: skip

    def remove(self, lab: Lab) -> None:
        own = lab.record.interface(self._node)
        lines = (f"link set {own} master {lab.record.bridge}", f"link del {own}-x")
        run_ip(lab.record, lines, forgiving=True)
        if self._running is not None:
            self._running.kill()
            self._running.communicate()
            self._running = None


def isolated(state: str, *nodes: str) -> Deed:
    """Ports of the switch that are isolated hear all others, and not each other."""

    def make(lab: Lab) -> None:
        ports = [lab.record.interface(node) for node in nodes]
        run_ip(lab.record, [f"link set {p} type bridge_slave isolated {state}" for p in ports])

    return make


_CHAIN = (
    " nft add chain inet t {0} '{{ type filter hook {0} priority 0; }}';"
    " nft add rule inet t {0} tcp sport != 22 tcp dport != 22 meta length '>' 1000 drop;"
)
BIG_PACKETS_VANISH = "nft add table inet t;" + _CHAIN.format("input") + _CHAIN.format("output")
"""As on a path whose frames are smaller than both ends believe, and which tells nobody."""


# Machines.


def reboots(lab: Lab) -> None:
    """Off without a word, and back: it answers, and knows nothing of a job."""
    record = lab.record
    site(lab, LAST).power_off()
    reset_node(record, lab.paths, LAST)
    boot(record, lab.paths, (record.node(LAST),))


class _FastClock:
    """Gains a second in every two, for as long as nobody stops it."""

    def __init__(self, node: str) -> None:
        self._node = node
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, lab: Lab) -> None:
        self._ended.clear()
        file = lab.paths.node(self._node).clock
        self._thread = threading.Thread(target=self._run, args=(file,), daemon=True)
        self._thread.start()
        time.sleep(6.0)

    def _run(self, file: Path) -> None:
        began = time.monotonic()
        while not self._ended.wait(0.1):
            write_clock(file, 0.5 * (time.monotonic() - began))

    def stop(self, lab: Lab) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()
        write_clock(lab.paths.node(self._node).clock, 0.0)


OWN_DISK_HANGS = (
    "truncate -s 32M $NODE/disk && mkfs.ext4 -q $NODE/disk"
    " && mount -o loop $NODE/disk $WORK/checkpoints && fsfreeze -f $WORK/checkpoints"
)
"""Writes are taken and never done: whoever makes one waits where no signal reaches."""

OWN_DISK_GONE = inside(
    "fsfreeze -u $WORK/checkpoints || true; umount -l $WORK/checkpoints || true; rm -f $NODE/disk",
    LAST,
)

# What looks ill and is not.

BYSTANDER = "ulimit -c 0; sh -c 'kill -SEGV $$' || true; sh -c 'kill -KILL $$' || true"
ITS_END = (
    "jupyter-lab[8123]: segfault at 18 ip 00007f1c2a4d1b60 sp 00007ffd5a3c9e40 error 4 in"
    " libzmq.so.5.2.4[7f1c2a4b0000+6b000] likely on CPU 1 (core 1, socket 0)",
    "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=user.slice,mems_allowed=0,"
    "oom_memcg=/user.slice/user-1004.slice,task_memcg=/user.slice/user-1004.slice,"
    "task=jupyter-lab,pid=8130,uid=1004",
    "Memory cgroup out of memory: Killed process 8130 (jupyter-lab) total-vm:18284996kB,"
    " anon-rss:8372160kB, file-rss:3200kB, shmem-rss:0kB, UID:1004 pgtables:17012kB"
    " oom_score_adj:0",
)
UNUSED_PORT = (
    "ip link add eth1 type veth peer name eth1-peer; ip link set eth1-peer up;"
    " for i in 1 2 3; do ip link set eth1 up; ip link set eth1 down; done"
)
NEIGHBOUR = (
    "(setsid sh -c 'echo 19 >/proc/$$/autogroup; renice -n 19 $$; while :; do :; done'"
    " >/dev/null 2>&1 & echo $! >$NODE/neighbour)"
)
NEIGHBOUR_GONE = inside("kill $(cat $NODE/neighbour) || true; rm -f $NODE/neighbour", LAST)


def bystander_dies(lab: Lab) -> None:
    """Somebody's notebook on the same machine crashes, and another outgrows its user's share."""
    inside(BYSTANDER, LAST)(lab)
    site(lab, LAST).log_kernel(*ITS_END)


def _sound(name: str, make: Deed, undo: Deed = undone_by_a_new_start) -> LiveIncident:
    """Nothing is wrong with the job, and it has trained for long enough to know its pace."""
    return LiveIncident(name, make, nobody(F.NO_FAULT), undo, slow=True, waits=False)


def _slow(name: str, make: Deed, truth: Truth, undo: Deed) -> LiveIncident:
    return LiveIncident(name, make, truth, undo, slow=True)


_relay = _Relay(LAST, 5.0, 25.0)
_clock = _FastClock(OTHER)

LATER: tuple[LiveIncident, ...] = (
    LiveIncident("branch_not_taken_on_one", mischief("unused_parameter", "forward", (OTHER_RANK,)),
                 place(HANGS, OTHER)),
    LiveIncident("call_that_keeps_the_interpreter", mischief("holds_the_gil", "forward"),
                 place(HANGS, CULPRIT)),
    LiveIncident("gradient_overflows_on_one",
                 mischief("gradient_overflows", "forward", (OTHER_RANK,)),
                 place((F.NUMERIC_NAN, F.USER_CODE), OTHER)),
    _sound("unused_port_flaps", inside(UNUSED_PORT, OTHER),
           inside("ip link del eth1 || true", OTHER)),
    _sound("logs_at_debug_level", mischief("logs_much", "forward", ALL, lasts=True)),
    LiveIncident("suspended_for_seven_seconds",
                 both(held("freezer", OTHER, FROZEN), pause(7.0), let_go("freezer")), SOUND,
                 let_go("freezer"), waits=False),
    LiveIncident("few_descriptors", few_descriptors, place(RAISED, CULPRIT)),
    _slow("loader_on_crumbs_of_a_core", held("cpu", FIRST, CRUMBS, loader=True),
          place((F.DATA_LOADER, *STRAGGLER), FIRST), let_go("cpu")),
    LiveIncident("switch_isolates_two_ports", isolated("on", OTHER, CULPRIT),
                 nobody(*NETWORK, F.NETWORK_SWITCH, seen_at=(OTHER, CULPRIT)),
                 isolated("off", OTHER, CULPRIT)),
    _slow("sliver_of_a_core", held("cpu", OTHER, SLIVER), place(STRAGGLER, OTHER), let_go("cpu")),
    # No login comes to an end there either, so that nobody can start a rank on it: to take another
    # node is right (said after it had run, as the node is named and what it has is not broken).
    LiveIncident("big_packets_vanish", inside(BIG_PACKETS_VANISH, OTHER),
                 Truth(frozenset({*NETWORK, F.NETWORK_SWITCH, F.ENVIRONMENT_MISMATCH}),
                       frozenset({OTHER}), frozenset({OTHER})),
                 inside("nft delete table inet t || true", OTHER)),
    LiveIncident("reboots", reboots,
                 Truth(frozenset({F.NODE_FAILURE, F.HOST_KERNEL}), frozenset({LAST}),
                       frozenset({LAST}))),
)  # fmt: skip

LATER_SET_ASIDE: tuple[LiveIncident, ...] = (
    LiveIncident("covariance_not_positive_definite",
                 mischief("cholesky", "backward", (FIRST_RANK,)),
                 place((F.USER_CODE, F.NUMERIC_NAN), FIRST)),
    LiveIncident("breakpoint_left_in", mischief("breakpoint_left_in", "forward", ALL),
                 nobody(F.USER_CODE)),
    LiveIncident("data_ends_early_on_one", mischief("data_ends_early", "load", (LAST_RANK,)),
                 place((F.DATA_LOADER, F.USER_CODE), LAST)),
    _sound("neighbour_of_lowest_priority", inside(NEIGHBOUR, LAST), NEIGHBOUR_GONE),
    LiveIncident("saves_for_long", both(mischief("saves_for_long", "save", ALL), saving_for(6.0)),
                 SOUND, waits=False),
    _sound("bystander_dies", bystander_dies, forget_kernel_log(LAST)),
    LiveIncident("suspended_by_its_group", held("freezer", CULPRIT, FROZEN),
                 place(HANGS, CULPRIT), let_go("freezer")),
    LiveIncident("clock_runs_fast", _clock.start, place((F.ENVIRONMENT_MISMATCH,), OTHER),
                 _clock.stop),
    _slow("late_and_out_of_order", _relay.insert, place((*NETWORK, *STRAGGLER), LAST),
          _relay.remove),
    LiveIncident("killed_by_its_limit", killed_by_its_limit, place((F.CPU_OOM,), LAST),
                 both(let_go("memory"), forget_kernel_log(LAST))),
    LiveIncident("one_killed_while_another_loops",
                 both(mischief("regex_never_ends", "forward", (LAST_RANK,)), pause(2.0),
                      signal_to(signal.SIGKILL, OTHER)),
                 place((F.UNKNOWN, F.USER_CODE, F.CPU_OOM, F.HANG_MISMATCH), OTHER, LAST)),
    LiveIncident("own_disk_hangs", inside(OWN_DISK_HANGS, LAST),
                 place((F.STORAGE_CHECKPOINT, *HANGS), LAST), OWN_DISK_GONE),
)  # fmt: skip
