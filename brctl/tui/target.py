"""What the cursor stands on, as far as keys care."""

from dataclasses import dataclass

from brctl.model.nodeset import fold
from brctl.tui.session.facts import Facts


@dataclass(frozen=True, slots=True)
class Target:
    """Nodes, a verdict, a run; empty where there is none."""

    nodes: tuple[str, ...] = ()
    verdict: str = ""
    run: str = ""
    job: str = ""

    @property
    def folded(self) -> str:
        """The nodes as one set."""
        return fold(self.nodes)


NOTHING = Target()


def target_of(key: str, facts: Facts) -> Target:
    """What a row's key stands for."""
    kind, _, item = key.partition(":")
    if kind == "nodes":
        return Target(nodes=tuple(item.split("\n")))
    if kind == "node":
        return _with_verdict(item, facts)
    if kind in ("verdict", "incident"):
        stored = facts.verdict(item)
        return Target(stored.verdict.nodes, item, job=stored.verdict.job) if stored else NOTHING
    if kind == "run":
        run = facts.run(item)
        return Target(run.nodes, run.verdict_id, item, run.job) if run else NOTHING
    return NOTHING


def _with_verdict(node: str, facts: Facts) -> Target:
    verdict = next((s.verdict.id for s in facts.open_verdicts if node in s.verdict.nodes), "")
    fact = facts.node(node)
    return Target((node,), verdict, job=fact.job if fact else "")
