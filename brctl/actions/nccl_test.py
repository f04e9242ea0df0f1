"""nccl.test: a collective between each node and a known-good one; every result, and the bandwidth.

The bandwidth is compared with that of two known-good nodes, measured in the same step: an absolute
number would be wrong on the next fabric.
"""

from collections.abc import Iterator, Sequence
from itertools import islice

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import ActionFailed, ActionResult, ReadOnly
from brctl.model.localisation import GroupResult
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments
from brctl.model.units import parse_size_bytes

OPERATIONS = ("all_reduce", "all_gather", "all_to_all")


class NcclTest(ReadOnly):
    """Which nodes pass beside a known-good one."""

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "loaded by collectives"),)
        nodes = fold(arguments.nodes(args, "nodes"))
        return (Change(Sign.ALTER, nodes, "loaded by collectives with known-good nodes"),)

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        nodes = arguments.nodes(args, "nodes")
        good = await _known_good(context, args, nodes)
        size = parse_size_bytes(str(args.get("size", "64M")))
        op, reps = arguments.text(args, "op", OPERATIONS[0]), arguments.count(args, "reps", 8)
        if op not in OPERATIONS:
            raise ActionFailed(f"`op` is one of {', '.join(OPERATIONS)}, not {op!r}")
        ratio = args.get("min_busbw_ratio")
        reference = await self._reference(context, good, ratio is not None, op, size, reps)
        problems: dict[str, str] = {}
        for pairs in _rounds(nodes, good):
            results = await context.search.test_groups(pairs, op, size, reps)
            for (node, other), result in zip(pairs, results, strict=True):
                problem = _problem(result, other, reference, ratio)
                problems |= {node: problem} if problem else {}
        passed = [node for node in nodes if node not in problems]
        say = f"{len(passed)} of {len(nodes)} nodes pass {op} beside {fold(good)}"
        say += "".join(f"; {node}: {why}" for node, why in problems.items())
        if problems and args.get("may_fail") is not True:
            raise ActionFailed(say)
        out: Arguments = {"passed": passed, "failed": sorted(problems)}
        return ActionResult(out, changed=False, say=say)

    async def _reference(
        self, context: RunContext, good: Sequence[str], wanted: bool, op: str, size: int, reps: int
    ) -> float | None:
        """Bus bandwidth between two known-good nodes; None when nobody asks for it."""
        if not wanted:
            return None
        if len(good) < 2:
            raise ActionFailed("`min_busbw_ratio` needs two known-good nodes in `against`")
        (result,) = await context.search.test_groups([tuple(good[:2])], op, size, reps)
        if result.failed != 0 or result.busbw_gb_per_s is None:
            raise ActionFailed(f"{good[0]} and {good[1]} do not pass beside each other")
        return result.busbw_gb_per_s


async def _known_good(
    context: RunContext, args: Arguments, nodes: Sequence[str]
) -> tuple[str, ...]:
    against = args.get("against", "@golden")
    if isinstance(against, str):
        chosen = await context.nodes.select(against)
    else:
        chosen = arguments.nodes(args, "against")
    busy = {node for node in chosen if node in nodes}
    good = tuple(node for node in chosen if node not in busy)
    if not good:
        raise ActionFailed(f"`against`: {against!r} names no other node")
    return good


def _rounds(nodes: Sequence[str], good: Sequence[str]) -> Iterator[list[tuple[str, ...]]]:
    """Disjoint pairs that run side by side, as many as there are known-good nodes."""
    left = iter(nodes)
    while some := list(islice(left, len(good))):
        yield [(node, good[index]) for index, node in enumerate(some)]


def _problem(result: GroupResult, other: str, reference: float | None, ratio: object) -> str | None:
    if result.failed is None or result.silent:
        return f"no answer beside {other}"
    if result.failed:
        return f"{result.failed} of {result.reps} collectives with {other} are wrong"
    if reference is None or not isinstance(ratio, int | float):
        return None
    if result.busbw_gb_per_s is None:
        return f"no bandwidth measured beside {other}"
    if result.busbw_gb_per_s < ratio * reference:
        return (
            f"{result.busbw_gb_per_s:.2f} GB/s beside {other}, less than {ratio:g} of"
            f" {reference:.2f} GB/s between known-good nodes"
        )
    return None
