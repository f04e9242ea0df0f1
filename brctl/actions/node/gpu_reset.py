"""gpu.reset: reset GPUs through nvidia-smi; refuses while a process or a job holds one.

With NVLink between them GPUs are reset together, so `gpus: all` is the default and single GPUs are
for boards without it. A GPU that fell off the bus does not come back by this; its node must reboot.
A reset of all leaves a line in the node's kernel log, so that older Xids do not convict it again.
"""

import re
from collections.abc import Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, FailureKind, NothingDone, Observation
from brctl.actions.readings import readings_of
from brctl.evidence.kernel_ends import RESET_MARK
from brctl.model.command import Outcome
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

_MARK = (
    "import os, sys; log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND);"
    "os.write(log, sys.argv[2].encode())"
)

DEVICES, PROCESSES = "gpu.devices", "gpu.processes"
RESET_S = 90.0
"""A reset of eight GPUs with NVLink takes up to half a minute; longer is a hung driver."""
MARK_S = 10.0

_GPU = re.compile(
    r"\d{1,2}|GPU-[0-9a-f-]{36}|(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.0"
)


class GpuReset:
    """See the head of this file."""

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        """A reset leaves no mark: whether one was done cannot be told, so it is asked about."""
        return Observation(None, say="a reset leaves no mark to look at", markless=True)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "GPUs reset"),)
        what = ", ".join(_gpus(args)) or "all GPUs"
        return tuple(
            Change(Sign.ALTER, node, f"{what} reset") for node in arguments.nodes(args, "nodes")
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        nodes, gpus = arguments.nodes(args, "nodes"), _gpus(args)
        for node in nodes:
            await _refuse_busy(context, node)
        argv = ("nvidia-smi", "--gpu-reset", *(("-i", ",".join(gpus)) if gpus else ()))
        for node in nodes:
            answer = await context.nodes.run_program(node, argv, RESET_S, root=True)
            if answer.outcome is not Outcome.ANSWERED:
                raise ActionFailed(f"{node}: {answer.detail}", FailureKind.TRANSPORT)
            if answer.exit_status != 0:
                raise ActionFailed(f"{node}: nvidia-smi --gpu-reset: {_last_line(answer.stdout)}")
        unmarked = [] if gpus else [node for node in nodes if not await _mark(context, node)]
        say = f"{', '.join(gpus) or 'all GPUs'} of {fold(nodes)} reset"
        if unmarked:
            say += f"; the kernel log of {fold(unmarked)} took no mark, its older Xids still count"
        return ActionResult({"reset": list(nodes)}, say=say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        return ActionResult(changed=False, say="a reset cannot be undone")

    async def confirm(self, context: RunContext, args: Arguments) -> Observation:
        """The driver lists every GPU again and has lost none."""
        missing = []
        for node in arguments.nodes(args, "nodes"):
            problem = await _problem_of(context, node)
            missing += [f"{node}: {problem}"] if problem else []
        return Observation(not missing, say="; ".join(missing) or "every GPU answers")


def _gpus(args: Arguments) -> tuple[str, ...]:
    value = args.get("gpus", "all")
    if value == "all":
        return ()
    listed = value if isinstance(value, list) else [value]
    for gpu in listed:
        if not _GPU.fullmatch(str(gpu)):
            raise NothingDone(f"`gpus` is all, or indexes, UUIDs or PCI addresses, not {gpu!r}")
    return tuple(str(gpu) for gpu in listed)


async def _refuse_busy(context: RunContext, node: str) -> None:
    """Whoever computes on a GPU would die of its reset; who cannot be seen is not excluded."""
    carried = [job.name for job in await context.jobs.all() if node in job.nodes]
    if carried and await _carries_ranks(context, node, carried):
        raise NothingDone(f"{node} carries ranks of {', '.join(carried)}; stop the job first")
    found = readings_of(await context.sweeps.ask(node, PROCESSES, None, {}), PROCESSES)
    counts = found.values("gpu.processes.count")
    unseen = (context.inventory.nodes[node].gpus or 1) - len(counts)
    if found.problem or unseen > 0:
        why = found.problem or "; ".join(found.notes) or f"{unseen} GPUs are missing"
        raise NothingDone(
            f"{node}: nobody can tell which processes hold its GPUs ({why[:200]});"
            " a node whose GPUs do not answer needs node.reboot"
        )
    held = {subject: value for subject, value in counts.items() if value}
    if held:
        holders = ", ".join(f"{subject} by {value}" for subject, value in sorted(held.items()))
        raise NothingDone(f"{node}: processes hold {holders}; end them first")


async def _carries_ranks(context: RunContext, node: str, names: Sequence[str]) -> bool:
    for name in names:
        job = await context.jobs.get(name)
        state = await context.backend.job_status(job)
        if node in state.unreachable or set(state.alive) & set(job.ranks_on(node)):
            return True
    return False


async def _mark(context: RunContext, name: str) -> bool:
    """Whether the node's kernel log says now that its GPUs were reset."""
    node = context.inventory.nodes[name]
    log = node.labels.get("kernel_log", "/dev/kmsg")
    argv = (node.python, "-I", "-c", _MARK, log, f"{RESET_MARK}\n")
    answer = await context.nodes.run_program(name, argv, MARK_S, root=True)
    return answer.outcome is Outcome.ANSWERED and answer.exit_status == 0


async def _problem_of(context: RunContext, node: str) -> str:
    found = readings_of(await context.sweeps.ask(node, DEVICES, None, {}), DEVICES)
    if found.problem:
        return found.problem
    lost = [subject for subject, value in found.values("gpu.device.lost").items() if value]
    if lost:
        return f"{', '.join(sorted(lost))} is lost"
    counts = list(found.values("gpu.devices.nvml_count").values())
    expected = context.inventory.nodes[node].gpus
    if expected is not None and counts and int(counts[0]) < expected:
        return f"the driver lists {counts[0]} of {expected} GPUs"
    return "" if counts else "the driver lists no GPUs"


def _last_line(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip().rpartition("\n")[2][:200] or "no message"
