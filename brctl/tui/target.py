"""What the cursor stands on, as far as keys care."""

from collections.abc import Iterable
from dataclasses import dataclass

from brctl.model.nodeset import fold, natural_key
from brctl.playbook.run import Run
from brctl.tui.address import Address
from brctl.tui.session.facts import Facts


@dataclass(frozen=True, slots=True)
class Target:
    """Nodes, a verdict, a run; empty where there is none.

    Attributes:
        opens: Its own page, where that is not the one of its run, node or verdict.
    """

    nodes: tuple[str, ...] = ()
    verdict: str = ""
    run: str = ""
    job: str = ""
    opens: Address | None = None

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
    if kind == "job":
        return _of_job(item, facts)
    if kind == "run":
        run = facts.run(item)
        return Target(run.nodes, run.verdict_id, item, run.job) if run else NOTHING
    return NOTHING


def marked(keys: Iterable[str], facts: Facts) -> Target:
    """Several rows at once: their nodes, and what they share of the rest."""
    targets = [target_of(key, facts) for key in sorted(keys)]
    nodes = dict.fromkeys(node for target in targets for node in target.nodes)
    return Target(
        tuple(sorted(nodes, key=natural_key)),
        _shared(target.verdict for target in targets),
        _shared(target.run for target in targets),
        _shared(target.job for target in targets),
    )


def _shared(values: Iterable[str]) -> str:
    found = set(values)
    return found.pop() if len(found) == 1 else ""


def _of_job(name: str, facts: Facts) -> Target:
    job = facts.job(name)
    verdict = next((s.verdict.id for s in facts.open_verdicts if s.verdict.job == name), "")
    return Target(job.nodes, verdict, job=name, opens=Address("jobs", name)) if job else NOTHING


def waiting_run(target: Target, facts: Facts) -> Run | None:
    """The run that an answer would be for: the one chosen, one about this, or the only one."""
    waiting = facts.waiting_runs
    if target.run:
        return next((run for run in waiting if run.name == target.run), None)
    about = next((run for run in waiting if _is_about(run, target)), None)
    return waiting[0] if about is None and len(waiting) == 1 else about


def _is_about(run: Run, target: Target) -> bool:
    if target.verdict:
        return run.verdict_id == target.verdict
    return bool(target.job) and run.job == target.job


def _with_verdict(node: str, facts: Facts) -> Target:
    verdict = next((s.verdict.id for s in facts.open_verdicts if node in s.verdict.nodes), "")
    fact = facts.node(node)
    return Target((node,), verdict, job=fact.job if fact else "")
