"""A sweep as people read it: worst first, identical answers under one node set."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from brctl.evidence.reach import unreached_together
from brctl.model.command import Outcome
from brctl.model.evidence import Evidence, Weight
from brctl.model.exit_codes import ExitCode, worst
from brctl.model.inventory import Node
from brctl.model.nodeset import fold, natural_key
from brctl.model.sweeps.sweep import EXIT_OF, Health, NodeHealth, Sweep
from brctl.view.alike import fold_alike
from brctl.view.documents import node_document, sweep_document
from brctl.view.fleet.reach import reach_lines, unreached_document
from brctl.view.notices.page import Page
from brctl.view.text import columns, printable

WORDS = {
    Health.CRITICAL: "CRIT",
    Health.UNKNOWN: "UNKNOWN",
    Health.WARNING: "WARN",
    Health.OK: "OK",
}
_SHOWN = {
    Health.CRITICAL: (Weight.CONVICTS,),
    Health.WARNING: (Weight.HINTS,),
}

_NO_INVENTORY: Mapping[str, Node] = MappingProxyType({})


def sweep_page(
    sweep: Sweep,
    context: str,
    *,
    documents: bool = True,
    inventory: Mapping[str, Node] = _NO_INVENTORY,
) -> Page:
    """The answer of `brctl sweep`; without documents its text only, for people.

    `inventory` says what nodes share when most of them are not reached.
    """
    head = (
        f"sweep {sweep.id}  {context}  {len(sweep.nodes)} nodes  {len(sweep.checks)} checks"
        f"  level {sweep.level}  {sweep.seconds:.1f} s"
    )
    unreached = unreached_together((node.report for node in sweep.nodes), inventory)
    found = [*sweep.of(Health.CRITICAL), *sweep.of(Health.UNKNOWN)]
    nodes = [node_document(node) for node in sweep.nodes] if documents else []
    return Page(
        kind="Sweep",
        body={**sweep_document(sweep, nodes), "unreached": unreached_document(unreached)},
        text="\n".join([head, *reach_lines(unreached), columns(list(gathered(sweep.nodes)))]),
        exit_code=sweep_exit(sweep),
        names=tuple(node.node for node in found),
        rows=tuple(nodes),
        next=(f"brctl dx -w {fold(node.node for node in found)}",) if found else (),
    )


def sweep_exit(sweep: Sweep) -> ExitCode:
    """The answer of the whole sweep; worst node decides."""
    return worst(EXIT_OF[node.health] for node in sweep.nodes)


def gathered(nodes: Iterable[NodeHealth]) -> Iterable[Sequence[str]]:
    """Rows of state, count, folded nodes, check and detail; nodes that say the same share one."""
    listed = list(nodes)
    for health, word in WORDS.items():
        members = [node for node in listed if node.health is health]
        if not members:
            continue
        if health is Health.OK:
            yield (word, str(len(members)), fold(n.node for n in members))
            continue
        first = True
        for nodes_text, check, detail in _reasons(members):
            yield (
                word if first else "",
                str(len(members)) if first else "",
                nodes_text,
                check,
                detail,
            )
            first = False


def _reasons(members: Sequence[NodeHealth]) -> Iterable[tuple[str, str, str]]:
    """Each distinct reason once, with the nodes that share it."""
    said = ((check, node.node, detail) for node in members for check, detail in _why(node))
    for each in sorted(fold_alike(said), key=lambda e: (natural_key(e.nodes[0]), e.key, e.text)):
        yield fold(each.nodes), each.key, each.text


def _why(node: NodeHealth) -> Iterable[tuple[str, str]]:
    """Why a node is in its state: the evidence that decided, or what is missing."""
    weights = _SHOWN.get(node.health, ())
    for item in node.evidence:
        if item.weight in weights:
            yield item.source, printable(_with_device(item), 120)
    if node.report.outcome is not Outcome.ANSWERED:
        # Its checks say nothing more.
        said = (gap.why for gap in node.gaps if gap.what == "node")
        yield "node", printable(next(said, node.report.why_silent), 120)
    elif node.health is Health.UNKNOWN:
        for gap in node.gaps[:4]:
            yield gap.what, printable(gap.why, 120)


def _with_device(item: Evidence) -> str:
    device = item.subject.called
    if not device or device in item.text:
        return item.text
    return f"{device}: {item.text}" if item.subject.name else f"{item.text} ({device})"
