"""Faults of a live job, made by other means than `lab break`; what a right answer to each is.

One row an incident: how it is made, what is true of it, how it is undone where a new start of the
job does not undo it. The rows of SET_ASIDE were named before any of them had run; rules are not
tried on them.
"""

import json
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brctl.lab.cluster import Lab
from brctl.lab.processes import command_line, send
from brctl.lab.site import FaultSite, write_clock
from brctl.library.durable_files import write_atomic
from brctl.model.fault import FaultClass as F
from tests.bench.verdicts.incident import Truth, nobody, place

CULPRIT, RANK = "n3", 2
OTHER, OTHER_RANK = "n2", 1
ALL = (0, 1, 2, 3)
MISCHIEF = "mischief.json"
HANGS = (F.HANG_MISMATCH, F.USER_CODE)
NETWORK = (F.NETWORK_ETH, F.NETWORK_LINK, F.NODE_FAILURE)

Deed = Callable[[Lab], None]


def undone_by_a_new_start(_: Lab) -> None:
    """Training anew is all it takes."""


@dataclass(frozen=True, slots=True)
class LiveIncident:
    """One row.

    Attributes:
        make: Does it to a job that trains.
        undo: Takes back what outlives the job.
        slow: Its signs need a past of steps, and some steps more before anybody looks.
        waits: Whether to look again until something is named; else one settled look counts.
        before: What ranks do from their start on, where a step must be more than a pause.
    """

    family: str
    make: Deed
    truth: Truth
    undo: Deed = undone_by_a_new_start
    slow: bool = False
    waits: bool = True
    before: Deed = undone_by_a_new_start

    @property
    def makes_steps_longer(self) -> bool:
        """A straggler is one only where others wait for it; on some machines nobody does."""
        return self.slow and F.STRAGGLER_SLOW in self.truth.classes


def site(lab: Lab, node: str = CULPRIT) -> FaultSite:
    return FaultSite(lab.record, lab.paths, node)


AHEAD_STEPS = 6
"""Half a second at the lab's pace: until then every rank has read what it will do."""


def last_step(lab: Lab) -> int:
    """The newest step that any rank tells of."""
    files = (lab.paths.work / "progress").glob("rank-*.json")
    return max((int(json.loads(path.read_text())["step"]) for path in files), default=0)


def mischief(do: str, where: str, ranks: Sequence[int] = (RANK,), *, lasts: bool = False) -> Deed:
    """What the saboteur does in these ranks, from one step on: the same for all of them.

    Ranks that began as soon as they read of it would begin within two steps, and the first of them
    would keep the others from ever beginning.
    """

    def make(lab: Lab) -> None:
        told = {"do": do, "where": where, "ranks": list(ranks), "lasts": lasts}
        told["from_step"] = last_step(lab) + AHEAD_STEPS
        write_atomic(lab.paths.work / MISCHIEF, json.dumps(told))

    return make


def forget_mischief(lab: Lab) -> None:
    (lab.paths.work / MISCHIEF).unlink(missing_ok=True)


def signal_to(number: signal.Signals, *nodes: str, loader: bool = False) -> Deed:
    """A signal to the rank of each node, or to its loader's worker alone."""

    def make(lab: Lab) -> None:
        for node in nodes or (CULPRIT,):
            worker = site(lab, node).loader()
            ranks = [pid for pid in site(lab, node).trainers() if pid != worker]
            send([worker] if loader else ranks, number)

    return make


def inside(script: str, node: str = CULPRIT) -> Deed:
    """A shell script in the namespaces of a node, with the job's folders as variables."""

    def make(lab: Lab) -> None:
        work, scratch = lab.paths.work, lab.paths.node(node).root
        site(lab, node).run_inside(f"WORK={work}; NODE={scratch}; {script}")

    return make


def to_sshd(number: signal.Signals, node: str = CULPRIT) -> Deed:
    """A signal to what takes logins on a node."""

    def make(lab: Lab) -> None:
        found = [p for p in site(lab, node).processes() if b"sshd" in command_line(p)[0]]
        send(found, number)

    return make


def clock(offset_s: float) -> Deed:
    def make(lab: Lab) -> None:
        write_clock(site(lab).files.clock, offset_s)

    return make


def both(*deeds: Deed) -> Deed:
    def make(lab: Lab) -> None:
        for deed in deeds:
            deed(lab)

    return make


def at_peers(script: str) -> Deed:
    """The same on every node but the one it is about."""
    return both(*(inside(script, node) for node in ("n1", "n2", "n4")))


def _stuck(do: str, where: str) -> LiveIncident:
    """One rank never comes to where the others wait; its machine is sound."""
    return LiveIncident(f"{do}_in_{where}", mischief(do, where), place(HANGS, CULPRIT))


def _raises(do: str, where: str, *faults: F) -> LiveIncident:
    truth = place((F.USER_CODE, *faults), CULPRIT)
    return LiveIncident(f"{do}_in_{where}", mischief(do, where), truth)


def _all_raise(do: str, *faults: F) -> LiveIncident:
    truth = nobody(*(faults or (F.USER_CODE,)))
    return LiveIncident(f"{do}_everywhere", mischief(do, "forward", ALL), truth)


def _ends(do: str, *faults: F) -> LiveIncident:
    """A rank is gone without a word; where is known, why is not."""
    truth = place((F.UNKNOWN, F.USER_CODE, *faults), CULPRIT)
    return LiveIncident(do, mischief(do, "forward"), truth)


def _signalled(name: str, *faults: F) -> LiveIncident:
    truth = place((F.UNKNOWN, F.USER_CODE, *faults), CULPRIT)
    return LiveIncident(f"rank_{name.lower()}", signal_to(signal.Signals[name]), truth)


def _sound(do: str) -> LiveIncident:
    """Nothing is wrong, whatever is printed; where that lasts, the job has a past by then."""
    lasts = do.startswith("prints")
    deed = mischief(do, "forward", lasts=lasts)
    slow = lasts or do == "nothing"
    return LiveIncident(do, deed, nobody(F.NO_FAULT), slow=slow, waits=False)


def _slow(do: str, where: str, ranks: Sequence[int], truth: Truth) -> LiveIncident:
    deed = mischief(do, where, ranks, lasts=True)
    return LiveIncident(f"{do}_for_{len(ranks)}_in_{where}", deed, truth, slow=True)


DROP_TRAINING = (
    "nft add table inet t; nft add chain inet t o '{ type filter hook output priority 0; }';"
    " nft add rule inet t o tcp sport != 22 drop"
)
LOSE_SOME_OF_ITS = (
    "from=$(getent hosts n3 | cut -d' ' -f1);"
    " nft add table inet t; nft add chain inet t o '{ type filter hook input priority 0; }';"
    " nft add rule inet t o ip saddr $from tcp sport != 22 numgen random mod 100 '<' 8 drop"
)
"""At its peers: what a filter drops on the way out was never sent, says TCP, and tries again."""

NO_RULES_HERE = "nft delete table inet t 2>/dev/null || true"
NO_RULES = inside(NO_RULES_HERE)
MTU = (
    "for l in $(ip -br link | cut -d' ' -f1 | cut -d@ -f1); do"
    " [ $l = lo ] || ip link set $l mtu {}; done"
)
READ_ONLY = (
    "mount --bind $WORK/checkpoints $WORK/checkpoints; mount -o remount,bind,ro $WORK/checkpoints"
)
FULL = (
    "mount -t tmpfs -o size=64k none $WORK/checkpoints; head -c 64k /dev/zero > $WORK/checkpoints/x"
)
NOT_MOUNTED = inside("umount $WORK/checkpoints 2>/dev/null || true")
STRAGGLER = (F.STRAGGLER_SLOW,)
SLOW_JOB = (F.UNKNOWN, F.STRAGGLER_SLOW, F.DATA_LOADER)

OPEN: tuple[LiveIncident, ...] = (
    _stuck("deadlock", "forward"), _stuck("loops", "load"), _stuck("sleeps", "backward"),
    _stuck("barrier", "all_reduce"), _stuck("reads_a_pipe", "load"),
    LiveIncident("two_deadlock", mischief("deadlock", "forward", (OTHER_RANK, RANK)),
                 place(HANGS, OTHER, CULPRIT)),
    LiveIncident("all_sleep", mischief("sleeps", "forward", ALL), nobody(*HANGS, F.UNKNOWN)),
    _raises("value_error", "forward"), _raises("not_unicode", "load", F.DATA_LOADER),
    _raises("out_of_gpu_memory", "forward", F.GPU_OOM),
    _raises("raises_and_stays", "backward", F.HANG_MISMATCH), _raises("recursion", "backward"),
    _all_raise("key_error"), _all_raise("wrong_shapes"),
    _ends("leaves_with_zero"), _ends("aborts"),
    _ends("kills_its_loader", F.DATA_LOADER, F.CPU_OOM),
    _signalled("SIGKILL", F.CPU_OOM), _signalled("SIGTERM", F.PREEMPTION_SIGTERM),
    _signalled("SIGSEGV"),
    LiveIncident("rank_stopped", signal_to(signal.SIGSTOP), place(HANGS, CULPRIT)),
    LiveIncident("loader_stopped", signal_to(signal.SIGSTOP, loader=True),
                 place((F.DATA_LOADER, *HANGS), CULPRIT)),
    LiveIncident("all_told_to_stop", signal_to(signal.SIGTERM, "n1", "n2", "n3", "n4"),
                 nobody(F.PREEMPTION_SIGTERM, F.UNKNOWN)),
    LiveIncident("logins_hang_while_it_trains", to_sshd(signal.SIGSTOP), nobody(F.UNKNOWN),
                 to_sshd(signal.SIGCONT), waits=False),
    LiveIncident("checkpoints_read_only_on_one", inside(READ_ONLY),
                 place((F.STORAGE_CHECKPOINT,), CULPRIT), NOT_MOUNTED),
    LiveIncident("clock_four_seconds_ahead", clock(4.0), place((F.ENVIRONMENT_MISMATCH,), CULPRIT),
                 clock(0.0)),
    LiveIncident("training_packets_dropped", inside(DROP_TRAINING), place(NETWORK, CULPRIT),
                 NO_RULES),
    _slow("half_a_second", "forward", (RANK,), place(STRAGGLER, CULPRIT)),
    _slow("a_fifth_of_a_second", "load", ALL, nobody(*SLOW_JOB)),
    _sound("prints_a_cuda_error"), _sound("prints_a_traceback"), _sound("three_seconds"),
    LiveIncident("evaluates", mischief("evaluate", "forward", (0,)), nobody(F.NO_FAULT, F.UNKNOWN),
                 waits=False),
)  # fmt: skip

SET_ASIDE: tuple[LiveIncident, ...] = (
    _stuck("deadlock", "load"), _stuck("loops", "forward"),
    _stuck("waits_for_an_event", "backward"),
    _stuck("broadcast", "all_reduce"), _stuck("sleeps", "load"), _stuck("reads_a_pipe", "forward"),
    LiveIncident("two_receive", mischief("receives", "forward", (OTHER_RANK, RANK)),
                 place(HANGS, OTHER, CULPRIT)),
    LiveIncident("half_sleep", mischief("sleeps", "load", (0, 1, 2)),
                 nobody(*HANGS, F.UNKNOWN, F.DATA_LOADER)),
    _raises("assertion", "forward"), _raises("division", "backward"),
    _raises("no_such_file", "load", F.DATA_LOADER, F.STORAGE_CHECKPOINT),
    _raises("too_many_files", "load", F.DATA_LOADER, F.ENVIRONMENT_MISMATCH),
    _raises("raises_and_stays", "load", F.HANG_MISMATCH),
    _all_raise("out_of_gpu_memory", F.GPU_OOM), _all_raise("assertion"),
    _ends("leaves_at_once"), _ends("leaves_with_three"), _ends("segfaults"),
    _signalled("SIGABRT"), _signalled("SIGINT", F.PREEMPTION_SIGTERM), _signalled("SIGBUS"),
    LiveIncident("two_ranks_stopped", signal_to(signal.SIGSTOP, OTHER, CULPRIT),
                 place(HANGS, OTHER, CULPRIT)),
    LiveIncident("loader_killed", signal_to(signal.SIGKILL, loader=True),
                 place((F.DATA_LOADER, F.CPU_OOM), CULPRIT)),
    LiveIncident("all_stopped", signal_to(signal.SIGSTOP, "n1", "n2", "n3", "n4"),
                 nobody(F.HANG_MISMATCH, F.PREEMPTION_SIGTERM, F.UNKNOWN)),
    LiveIncident("logins_hang_and_another_deadlocks",
                 both(to_sshd(signal.SIGSTOP, OTHER), mischief("deadlock", "forward")),
                 place(HANGS, CULPRIT), to_sshd(signal.SIGCONT, OTHER)),
    LiveIncident("checkpoints_full_on_one", inside(FULL), place((F.DISK_FULL,), CULPRIT),
                 NOT_MOUNTED),
    LiveIncident("clock_an_hour_back", clock(-3600.0), place((F.ENVIRONMENT_MISMATCH,), CULPRIT),
                 clock(0.0)),
    LiveIncident("small_packets_on_one", inside(MTU.format(576)),
                 place((*NETWORK, F.ENVIRONMENT_MISMATCH), CULPRIT), inside(MTU.format(1500))),
    LiveIncident("loses_packets", at_peers(LOSE_SOME_OF_ITS), place(NETWORK, CULPRIT),
                 at_peers(NO_RULES_HERE), slow=True),
    _slow("a_fifth_of_a_second", "forward", (OTHER_RANK, RANK), place(STRAGGLER, OTHER, CULPRIT)),
    _slow("half_a_second", "load", ALL, nobody(*SLOW_JOB)),
    _sound("prints_an_nccl_error"), _sound("prints_out_of_memory"), _sound("nothing"),
)  # fmt: skip
