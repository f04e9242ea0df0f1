"""More faults of a live job, of kinds that no other table has; what a right answer to each is.

Thought of as somebody outside would who knows clusters and not this code. What is right was written
down, and half was set aside, before any of them had run.
"""

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress

from brctl.lab.cluster import Lab
from brctl.lab.processes import parent, send
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.incident import Truth, nobody, place
from tests.scenarios.live_incidents import (
    ALL,
    CULPRIT,
    HANGS,
    NETWORK,
    NO_RULES,
    NOT_MOUNTED,
    OTHER,
    RANK,
    STRAGGLER,
    Deed,
    LiveIncident,
    both,
    clock,
    inside,
    mischief,
    signal_to,
    site,
)

SOUND = nobody(F.NO_FAULT, F.UNKNOWN)
FLAP_S = 2.0


def ranks_on(lab: Lab, node: str = CULPRIT) -> list[int]:
    """The rank processes of a node, without their loaders."""
    loader = site(lab, node).loader()
    return [pid for pid in site(lab, node).trainers() if pid != loader]


def leave_a_zombie(lab: Lab) -> None:
    """Whoever started the rank is stopped, so nobody collects it when it is killed."""
    ranks = ranks_on(lab)
    send([starter for pid in ranks if (starter := parent(pid))], signal.SIGSTOP)
    send(ranks, signal.SIGKILL)


def collect_zombies(lab: Lab) -> None:
    send(site(lab).processes(), signal.SIGCONT)


def threads_on(lab: Lab) -> list[int]:
    """The threads of the ranks of a node."""
    return [int(thread) for pid in ranks_on(lab) for thread in os.listdir(f"/proc/{pid}/task")]


def burners(count: int, prefix: str = "") -> Deed:
    """Processes that compute for ever, each in a session of its own.

    Linux shares a core out among sessions where autogroups are on: all burners of one session
    together would take no more of it than the rank.
    """
    one = f"(setsid {prefix} sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $! >>$NODE/h)"
    return inside(";".join([one] * count))


def pin_to_one_core(lab: Lab) -> None:
    """And on that core three others are busy."""
    core = min(os.sched_getaffinity(0))
    for thread in threads_on(lab):
        with suppress(ProcessLookupError):
            os.sched_setaffinity(thread, {core})
    burners(3, f"taskset -c {core}")(lab)


def in_turns(stopped_s: float, running_s: float, *, loader: bool = False) -> Deed:
    """A process that runs for a while and is stopped for a while, as a limit on time does it."""

    def make(lab: Lab) -> None:
        pid = site(lab).loader() if loader else ranks_on(lab)[0]
        inner = _pid_inside(pid)
        inside(
            f"(while kill -STOP {inner}; do sleep {stopped_s}; kill -CONT {inner};"
            f" sleep {running_s}; done) >/dev/null 2>&1 & echo $! >>$NODE/h"
        )(lab)

    return make


def _pid_inside(pid: int) -> str:
    """What the innermost namespace calls a process."""
    with open(f"/proc/{pid}/status") as status:
        (row,) = [line for line in status if line.startswith("NSpid:")]
    return row.split()[-1]


END_HELPERS = inside("[ -f $NODE/h ] && kill $(cat $NODE/h); rm -f $NODE/h; true")


def end_turns(lab: Lab) -> None:
    END_HELPERS(lab)
    send(site(lab).trainers(), signal.SIGCONT)


def flap(lab: Lab) -> None:
    inside("ip link set eth0 down")(lab)
    time.sleep(FLAP_S)
    inside("ip link set eth0 up")(lab)


def step_the_clock(lab: Lab) -> None:
    """Half a minute ahead, and set right a second later."""
    clock(30.0)(lab)
    time.sleep(1.0)
    clock(0.0)(lab)


def _rules(hook: str, rule: str) -> str:
    return (
        f"nft add table inet t; nft add chain inet t o '{{ type filter hook {hook} priority 0; }}';"
        f" nft add rule inet t o {rule}"
    )


LOSE_WHAT_COMES_IN = _rules("input", "tcp dport != 22 numgen random mod 100 '<' 12 drop")
HEAR_ONE_PEER_NO_MORE = "peer=$(getent hosts n2 | cut -d' ' -f1);" + _rules(
    "input", "ip saddr $peer tcp dport != 22 tcp sport != 22 drop"
)
POLICED = _rules("output", "tcp sport != 22 limit rate over 300 kbytes/second drop")
FEW_FILES = "mount -t tmpfs -o nr_inodes=2,size=64m none $WORK/checkpoints"
NAMES_TAKE_A_SECOND = (
    "net=$(ip -4 -o addr show eth0 | awk '{print $4}' | cut -d. -f1-3);"
    " printf 'nameserver %s.250\\noptions timeout:1 attempts:1\\n' $net > $NODE/resolv;"
    " mount --bind $NODE/resolv /etc/resolv.conf"
)
NAMES_AS_BEFORE = inside("umount /etc/resolv.conf 2>/dev/null || true")


def _slow(name: str, make: Deed, truth: Truth, undo: Deed = lambda _: None) -> LiveIncident:
    return LiveIncident(name, make, truth, undo, slow=True)


def _lasting(do: str, where: str, ranks: Sequence[int] = (RANK,)) -> Deed:
    return mischief(do, where, ranks, lasts=True)


OUTSIDE: tuple[LiveIncident, ...] = (
    _slow("computes_longer_on_one", _lasting("computes_longer", "forward"),
          place(STRAGGLER, CULPRIT)),
    LiveIncident("pinned_to_a_busy_core", pin_to_one_core, place(STRAGGLER, CULPRIT), END_HELPERS,
                 slow=True, before=_lasting("works_hard", "forward", ALL)),
    LiveIncident("zombie_below_a_live_starter", leave_a_zombie,
                 place((F.UNKNOWN, F.USER_CODE, F.CPU_OOM, F.HANG_MISMATCH), CULPRIT),
                 collect_zombies),
    LiveIncident("no_inodes_for_checkpoints", inside(FEW_FILES),
                 place((F.DISK_FULL, F.STORAGE_CHECKPOINT), CULPRIT), NOT_MOUNTED),
    LiveIncident("collects_garbage", mischief("collects_garbage", "forward"), SOUND, waits=False),
    _slow("loses_what_comes_in", inside(LOSE_WHAT_COMES_IN), place(NETWORK, CULPRIT), NO_RULES),
    _slow("names_take_a_second", both(inside(NAMES_TAKE_A_SECOND), _lasting("asks_for_a_name",
          "load")), place((F.DATA_LOADER, F.ENVIRONMENT_MISMATCH, *STRAGGLER), CULPRIT),
          NAMES_AS_BEFORE),
    LiveIncident("clock_steps_and_back", step_the_clock, SOUND, clock(0.0), waits=False),
    LiveIncident("two_killed_at_once", signal_to(signal.SIGKILL, OTHER, CULPRIT),
                 nobody(F.UNKNOWN, F.CPU_OOM, F.PREEMPTION_SIGTERM, seen_at=(OTHER, CULPRIT))),
)  # fmt: skip

OUTSIDE_SET_ASIDE: tuple[LiveIncident, ...] = (
    LiveIncident("writes_to_a_full_pipe", mischief("writes_to_a_full_pipe", "backward"),
                 place(HANGS, CULPRIT)),
    LiveIncident("one_peer_unheard", inside(HEAR_ONE_PEER_NO_MORE),
                 nobody(*NETWORK, F.NETWORK_SWITCH, seen_at=(OTHER, CULPRIT)), NO_RULES),
    LiveIncident("link_down_for_two_seconds", flap, nobody(F.NO_FAULT, F.UNKNOWN, *NETWORK),
                 waits=False),
    _slow("policed_link", inside(POLICED), place((*NETWORK, *STRAGGLER), CULPRIT), NO_RULES),
    LiveIncident("memory_limit_of_its_own", mischief("fills_its_address_space", "forward"),
                 place((F.USER_CODE, F.CPU_OOM), CULPRIT)),
    _slow("weights_times_forty", mischief("multiplies_its_weights", "forward", ALL),
          nobody(F.NUMERIC_NAN, F.USER_CODE, F.UNKNOWN)),
    _slow("stopped_in_turns", in_turns(0.2, 0.1), place(STRAGGLER, CULPRIT), end_turns),
    _slow("loader_stopped_in_turns", in_turns(1.5, 0.01, loader=True),
          place((F.DATA_LOADER, *STRAGGLER), CULPRIT), end_turns),
    LiveIncident("sleeps_in_save", mischief("sleeps", "save"),
                 place((*HANGS, F.STORAGE_CHECKPOINT), CULPRIT)),
)  # fmt: skip
