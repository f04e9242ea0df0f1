"""What earlier runs found of a machine that computes wrongly: told with its age, convicting nobody.

A search is of one moment: its node may have been repaired, its "nothing found" excludes no fault
that strikes less often. So a later diagnosis knows of it and decides by what it sees itself.
"""

from collections.abc import Iterable, Iterator, Mapping

from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import SEARCHED_BEFORE
from brctl.model.nodeset import fold
from brctl.model.runs.past_search import PastSearch
from brctl.model.runs.playbook import Arguments
from brctl.model.units import describe_duration
from brctl.model.verdict import Verdict
from brctl.playbook.node_runs import split_instance
from brctl.playbook.run import Run
from brctl.playbook.steps import StepState

_NAMED_IN: Mapping[str, str] = {
    "check.run": "wrong",
    "corruption.locate": "suspects",
    "job.replay": "suspects",
}
"""The output that names machines, by verb."""


def searches_of(runs: Iterable[Run], job: str) -> tuple[PastSearch, ...]:
    """One for each step that looked for such a machine in the job, and came to its end, in order.

    Runs of no job may have given nodes back since.
    """
    by_end = [(run.ended_at, run) for run in runs if run.ended_at is not None]
    ended = sorted(by_end, key=lambda pair: pair[0])
    given_back = {node: at for at, run in ended for node in _given_back(run)}
    return tuple(
        PastSearch(
            run.name, at, tuple(n for n in named if given_back.get(n, at) <= at),
            _found(uses, named, out),
        )
        for at, run in ended
        if run.job == job
        for uses, out in _done(run)
        if uses in _NAMED_IN and (uses != "check.run" or _names(out, "wrong"))
        for named in [_names(out, _NAMED_IN[uses])]
    )  # fmt: skip


def _done(run: Run) -> Iterator[tuple[str, Arguments]]:
    for name, step in run.record.steps.items():
        if step.state is StepState.DONE:
            yield run.playbook.step(split_instance(name)[0]).uses, step.out


def _given_back(run: Run) -> tuple[str, ...]:
    back = (_names(out, "uncordoned") for uses, out in _done(run) if uses == "node.uncordon")
    return tuple(node for names in back for node in names)


def _names(out: Arguments, key: str) -> tuple[str, ...]:
    value = out.get(key)
    return tuple(str(name) for name in value) if isinstance(value, list) else ()


def _found(uses: str, named: tuple[str, ...], out: Arguments) -> str:
    if named:
        return f"{fold(named)}: {out.get('reason') or out.get('wrong_reason') or 'failed'}"
    if out.get("everywhere"):
        return "no machine: the same steps went wrong on others as well"
    if undecided := _names(out, "undecided"):
        return f"{fold(undecided)} could not be told apart"
    missing = _names(out, "unmeasured")
    return "not reproduced" + (f", and nothing is known of {fold(missing)}" if missing else "")


def with_searches(verdict: Verdict, searches: Iterable[PastSearch]) -> tuple[Evidence, ...]:
    """The verdict's chain, with what is known of earlier searches behind it."""
    return (*verdict.evidence, *(_context(search, verdict) for search in searches))


def _context(search: PastSearch, verdict: Verdict) -> Evidence:
    age_s = max(0.0, (verdict.decided_at - search.ended_at).total_seconds())
    return Evidence(
        kind=SEARCHED_BEFORE,
        subject=Subject(search.nodes[0] if len(search.nodes) == 1 else ""),
        weight=Weight.CONTEXT,
        fault=None,
        role=Role.CONTEXT,
        source=search.run,
        text=f"{describe_duration(age_s)} ago {search.run} found: {search.found}",
        at=search.ended_at,
    )
