"""A run goes through its steps once per node of `for_each`, or once in all: its node runs.

A step of a node run is an instance, `burnin@gpu0412`; in the only one it has the step's own id.
"""

from collections.abc import Collection, Mapping, Sequence

from brctl.model.errors import UsageError
from brctl.model.nodeset import expand as expand_nodes
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Arguments, ForEach, Json, Playbook
from brctl.model.runs.result import NODE_FAILED
from brctl.playbook.expressions import ExpressionError, Scope
from brctl.playbook.templates import expand

ONLY = ""
"""The node of the only node run of a playbook without `for_each`."""

Waves = tuple[tuple[str, ...], ...]
"""Nodes that run side by side, one group after the other."""


def instance_of(step_id: str, node: str) -> str:
    """The name of a step in a node run, for journal and record."""
    return f"{step_id}@{node}" if node else step_id


def split_instance(instance: str) -> tuple[str, str]:
    """Step id and node of an instance."""
    step_id, _, node = instance.partition("@")
    return step_id, node


def waves_of(playbook: Playbook, scope: Scope) -> Waves:
    """The canaries one by one, then the others in batches.

    Raises:
        UsageError: `for_each` does not name nodes, or its batch is no number.
    """
    each = playbook.for_each
    if each is None:
        return ((ONLY,),)
    try:
        nodes, batch = _nodes(expand(each.node, scope)), expand(each.batch, scope)
    except ExpressionError as exc:
        raise UsageError(f"{playbook.name}: for_each: {exc}") from exc
    if not isinstance(batch, int) or isinstance(batch, bool) or batch < 1:
        raise UsageError(f"{playbook.name}: for_each: batch is {batch!r}, not a number of nodes")
    canaries, others = nodes[: each.canary], nodes[each.canary :]
    batches = (others[start : start + batch] for start in range(0, len(others), batch))
    return (*((node,) for node in canaries), *batches)


def _nodes(value: Json) -> tuple[str, ...]:
    items = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return tuple(dict.fromkeys(name for item in items for name in expand_nodes(str(item))))


def too_many_failed(each: ForEach, order: Sequence[str], results: Mapping[str, str | None]) -> str:
    """Why a person must say whether to go on; "" while no more failed than may.

    A percentage counts against the nodes that are through, so that it means something from the
    first batch on. A canary that fails is always too many: that is what it is for.
    """
    failed = [node for node in order if results.get(node) in NODE_FAILED]
    canaries = [node for node in order[: each.canary] if node in failed]
    if canaries:
        return f"canary {fold(canaries)} failed"
    through = sum(1 for node in order if results.get(node))
    named = f"{len(failed)} of {through} nodes failed ({fold(failed)})"
    if each.max_failed_count is not None and len(failed) > each.max_failed_count:
        return f"{named}, more than {each.max_failed_count}"
    if each.max_failed_ratio is not None and len(failed) > each.max_failed_ratio * through:
        return f"{named}, more than {each.max_failed_ratio:.0%}"
    return ""


def narrowed(
    playbook: Playbook, inputs: Arguments, keep: Collection[str], node_runs: Collection[str]
) -> dict[str, Json]:
    """Inputs without the nodes of other node runs: a guard asks about this node only."""
    found: dict[str, Json] = dict(inputs)
    for name, spec in playbook.inputs.items():
        value = inputs.get(name)
        if spec.type.names_nodes and isinstance(value, Sequence):
            found[name] = [n for n in value if n in keep or n not in node_runs]
    return found
