"""Which candidate stands where a lost node stood: readiness and place, both in seconds."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.model.nodeset import fold
from brctl.model.runs.playbook import Arguments
from brctl.playbook.placement.domains import domains_for
from brctl.playbook.placement.price import ASSUMED, PlacePrice
from brctl.playbook.placement.spread import badness, layout_of, slower_by, spreads
from brctl.playbook.placement.standbys import LostNodes, ReadyNode, choose_in_turn


@dataclass(frozen=True, slots=True)
class EmptyPlaces:
    """The places that candidates are for.

    Attributes:
        loss: Which nodes leave the job.
        start_s: What is known of how ready candidates are; nothing of one that is not listed.
        price: What a further domain under a group costs.
    """

    loss: LostNodes
    start_s: dict[str, float]
    price: PlacePrice = ASSUMED

    def without(self, taken: Sequence[str]) -> "EmptyPlaces":
        """The places that are left when these candidates have taken those that suit them."""
        standby_of = self._pairs([taken])
        nodes = tuple(standby_of.get(node, node) for node in self.loss.nodes)
        lost = tuple(node for node in self.loss.lost if node not in standby_of)
        return replace(self, loss=replace(self.loss, nodes=nodes, lost=lost))

    def in_order(self, standbys: Sequence[str], held: Sequence[str]) -> tuple[str, ...]:
        """Candidates as they should be tried: those this run holds, those that passed, the rest."""
        first = [node for node in standbys if node in held]
        passed = [node for node in standbys if node in self.start_s and node not in first]
        others = [node for node in standbys if node not in first and node not in passed]
        chosen = tuple(self._pairs([first, passed, others]).values())
        rest = (node for node in (*first, *passed, *others) if node not in chosen)
        return (*chosen, *rest)

    def paired(self, nodes: Sequence[str]) -> tuple[str, ...]:
        """The same nodes in the order of those they replace."""
        return tuple(self._pairs([nodes]).values())

    def remark(self, nodes: Sequence[str]) -> str:
        """What it means for the job's groups when these come in, in the order of the lost."""
        domains = self.loss.domains
        unknown = [node for node in nodes if not domains.known(node)]
        if unknown:
            return f"where {fold(unknown)} stands is not known" if domains.level else ""
        standby_of = dict(zip(self.loss.lost, nodes, strict=False))
        before, after = (
            spreads(self.loss.layout, [domains.of(node) for node in some])[:1]
            for some in (self.loss.nodes, [standby_of.get(n, n) for n in self.loss.nodes])
        )
        if not after:
            return ""
        if badness(after) <= badness(before):
            return f"no further {after[0].axis} group is split"
        price = slower_by(after, self.price.slower_a_domain) - slower_by(
            before, self.price.slower_a_domain
        )
        worse = f", steps about {price:.1%} longer ({self.price.source})" if price else ""
        return f"{after[0].axis} groups split: {before[0].split} -> {after[0].split}{worse}"

    def _pairs(self, tiers: Sequence[Sequence[str]]) -> dict[str, str]:
        ready = [[ReadyNode(n, self.start_s.get(n, 0.0)) for n in tier] for tier in tiers]
        return dict(choose_in_turn(self.loss, ready))


async def empty_places(context: RunContext, args: Arguments) -> EmptyPlaces | None:
    """The places of the nodes that `replacing` names; None where the order is not to be chosen.

    A person who names standbys with `only` has chosen.
    """
    if args.get("only") or "replacing" not in args or not arguments.is_known(args, "replacing"):
        return None
    job = await context.jobs.get(arguments.text(args, "job"))
    lost = arguments.nodes(args, "replacing")
    if not set(lost) <= set(job.nodes) or len(lost) != arguments.count(args, "count"):
        return None
    price = context.standbys.place_price()
    loss = LostNodes(
        layout_of(job),
        job.nodes,
        lost,
        domains_for(context.inventory.labels(), job.nodes),
        context.standbys.uptime_s(len(job.nodes)),
        price.slower_a_domain,
    )
    return EmptyPlaces(loss, dict(context.standbys.start_s(job.name)), price)
