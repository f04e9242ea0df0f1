"""Faults that fleets have beside broken machines: full scratch, low priority, routes, debuggers.

What is right was written down, and half was set aside, before any of them had run. The rows in
which nothing is wrong train for long enough that brctl may call them healthy: only those tell what
`no-fault` HIGH is worth.
"""

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from brctl.lab.cluster import Lab
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.scenarios.live_incidents import (
    ALL,
    CULPRIT,
    HANGS,
    NETWORK,
    NO_RULES,
    OTHER,
    STRAGGLER,
    Deed,
    LiveIncident,
    both,
    inside,
    mischief,
    undone_by_a_new_start,
)
from tests.scenarios.outside_incidents import END_HELPERS, burners, ranks_on, threads_on

RAISED = (F.ENVIRONMENT_MISMATCH, F.USER_CODE, F.DATA_LOADER)
"""What a person would call an error of what a node has installed or lets its processes do."""

SCRATCH_FULL = "mount -t tmpfs -o size=64k none /var/tmp; head -c 64k /dev/zero > /var/tmp/x"
SCRATCH_AS_BEFORE = inside("umount /var/tmp 2>/dev/null || true")
_PEER = "peer=$(getent ahostsv4 n2 | head -n 1 | cut -d' ' -f1);"
WRONG_ROUTE = _PEER + " ip route add blackhole $peer/32; ! ip route get $peer"
"""The last command succeeds where packets to the peer have nowhere to go."""

ROUTE_AS_BEFORE = inside(_PEER + " ip route del blackhole $peer/32 || true")
RESETS = (
    "nft add table inet t; nft add chain inet t o '{ type filter hook output priority 0; }';"
    " nft add rule inet t o tcp sport != 22 reject with tcp reset"
)
NO_WAY_OUT = (
    "ip route del default 2>/dev/null; cp /etc/hosts $NODE/hosts;"
    " echo '203.0.113.9 mirror.example' >> $NODE/hosts; mount --bind $NODE/hosts /etc/hosts"
)
WAY_OUT = inside("umount /etc/hosts 2>/dev/null || true")


def beside_a_backup(lab: Lab) -> None:
    """Its ranks have the lowest priority there is, and a backup compresses on every core.

    Where autogroups are on, a process has a low priority only in its session, which has one too:
    at 10 it keeps a tenth of a core, at 19 a hundredth, in which no job makes steps.
    """
    for thread in threads_on(lab):
        with suppress(ProcessLookupError):
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))
    for pid in ranks_on(lab):
        group = Path(f"/proc/{pid}/autogroup")
        if group.exists():
            group.write_text("10")
    burners(len(os.sched_getaffinity(0)))(lab)


TRACER = """
import ctypes, signal, sys
libc = ctypes.CDLL(None)
for pid in map(int, sys.argv[1:]):
    libc.ptrace(0x4206, pid, None, None)  # PTRACE_SEIZE
    libc.ptrace(0x4207, pid, None, None)  # PTRACE_INTERRUPT
print("attached", flush=True)
signal.pause()
"""


class _Debugger:
    """A tracer of our own: the kernel lets go of what it holds when it ends."""

    def __init__(self) -> None:
        self._tracer: subprocess.Popen[bytes] | None = None

    def attach(self, lab: Lab) -> None:
        command = [sys.executable, "-c", TRACER, *map(str, ranks_on(lab))]
        self._tracer = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._tracer.stdout is not None
        assert self._tracer.stdout.readline() == b"attached\n"

    def detach(self, _: Lab) -> None:
        if self._tracer is not None:
            self._tracer.kill()
            self._tracer.communicate()


def _sound(name: str, make: Deed, undo: Deed = undone_by_a_new_start) -> LiveIncident:
    """Nothing is wrong with the job, and it has trained for long enough to know its pace."""
    return LiveIncident(name, make, nobody(F.NO_FAULT), undo, slow=True, waits=False)


def _raises(do: str, truth: Truth, where: str = "load") -> LiveIncident:
    return LiveIncident(do, mischief(do, where), truth)


def leave_it_alone(_: Lab) -> None:
    """A sound job."""


_debugger = _Debugger()

FLEET: tuple[LiveIncident, ...] = (
    LiveIncident("scratch_is_full",
                 both(inside(SCRATCH_FULL), mischief("spills_to_scratch", "load")),
                 place((F.DISK_FULL,), CULPRIT), SCRATCH_AS_BEFORE),
    LiveIncident("certificate_expired", mischief("certificate_expired", "load", ALL),
                 nobody(*RAISED)),
    LiveIncident("lowest_priority_beside_a_backup", beside_a_backup, place(STRAGGLER, CULPRIT),
                 END_HELPERS, slow=True),
    _raises("no_more_watches", place(RAISED, CULPRIT)),
    LiveIncident("wrong_route_to_one_peer", inside(WRONG_ROUTE),
                 nobody(*NETWORK, F.NETWORK_SWITCH, seen_at=(OTHER, CULPRIT)), ROUTE_AS_BEFORE),
    _sound("trains_on", leave_it_alone),
)  # fmt: skip

FLEET_SET_ASIDE: tuple[LiveIncident, ...] = (
    _raises("stale_handle", place((F.STORAGE_CHECKPOINT, F.DATA_LOADER), CULPRIT)),
    _raises("damaged_shard", place((F.DATA_LOADER, F.USER_CODE), CULPRIT)),
    LiveIncident("debugger_left_attached", _debugger.attach, place(HANGS, CULPRIT),
                 _debugger.detach),
    LiveIncident("connections_reset_by_a_filter", inside(RESETS), place(NETWORK, CULPRIT),
                 NO_RULES),
    _raises("quota_is_used_up", place((F.DISK_FULL, F.STORAGE_CHECKPOINT), CULPRIT), "save"),
    _sound("no_way_out_and_trains_on", inside(NO_WAY_OUT), WAY_OUT),
)  # fmt: skip
