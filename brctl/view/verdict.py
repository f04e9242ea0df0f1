"""Verdicts as people read them: what, do, if wrong; and the chain that explains it."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from brctl.evidence.job.pace import late_step_s
from brctl.evidence.job.unsettled import LookAgain, Unsettled
from brctl.model.deeper_look import DeeperLook
from brctl.model.evidence import Evidence, Role, Subject, Weight
from brctl.model.evidence_kinds import AILING
from brctl.model.exit_codes import ExitCode, worst
from brctl.model.fault import FaultClass
from brctl.model.jobs.job_status import JobStatus
from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, utc_text
from brctl.model.verdict import Confidence, Verdict
from brctl.view.alike import fold_alike
from brctl.view.documents import (
    deeper_document,
    evidence_document,
    verdict_document,
    verdicts_document,
)
from brctl.view.next_move import move_command, move_line
from brctl.view.notices.page import Json, Page
from brctl.view.text import columns, printable

GAPS_SHOWN = 8
CONTEXT_SHOWN = 3
_SIGN = {Weight.CONVICTS: "+", Weight.HINTS: "+", Weight.CLEARS: "-", Weight.CONTEXT: " "}
_SAYS = {
    Weight.CONVICTS: "decides",
    Weight.HINTS: "hints",
    Weight.CLEARS: "against",
    Weight.CONTEXT: "context",
}
_CONFIDENCE_IS = {
    Confidence.HIGH: "wrong at most once in ten",
    Confidence.MEDIUM: "likelier right than wrong; look before you act",
    Confidence.LOW: "a lead, not a verdict",
}


def verdict_exit(verdict: Verdict) -> ExitCode:
    """0 nothing wrong, 1 low confidence, 2 fault found, 3 cannot tell."""
    if verdict.fault is FaultClass.NO_FAULT:
        return ExitCode.OK
    if verdict.fault is FaultClass.UNKNOWN:
        return ExitCode.UNKNOWN
    return ExitCode.WARNING if verdict.confidence is Confidence.LOW else ExitCode.CRITICAL


def diagnosis_page(
    verdicts: Sequence[Verdict],
    status: JobStatus | None,
    nodes: Sequence[str],
    seconds: float,
    deeper: DeeperLook | None = None,
) -> Page:
    """The answer of `brctl dx`; a deeper look is named where this one left something open."""
    deeper = deeper if left_open(verdicts[0]) else None
    body = verdicts_document(verdicts)
    body |= {"verdict": verdict_document(verdicts[0]), "seconds": round(seconds, 3)}
    body |= {"deeper": deeper_document(deeper) if deeper else None}
    lines = [_scene_line(status, nodes, seconds)]
    for verdict in verdicts:
        lines += ["", *summary_lines(verdict)]
    if deeper:
        lines += ["", f"more:   {deeper_line(deeper)}"]
    main = verdicts[0]
    return Page(
        kind="Diagnosis",
        body=body,
        text="\n".join(lines),
        exit_code=worst(map(verdict_exit, verdicts)),
        names=main.nodes,
        rows=tuple(verdict_document(verdict) for verdict in verdicts),
        next=(
            *_next_steps(main, verdicts[1:]),
            *([_deeper_command(deeper, nodes, status)] if deeper else []),
        ),
    )


def left_open(verdict: Verdict) -> bool:
    """A higher level may find what this one did not; where nothing was reached it would not."""
    if verdict.fault is FaultClass.UNKNOWN:
        return not verdict.settle
    return verdict.confidence is not Confidence.HIGH


def deeper_line(deeper: DeeperLook) -> str:
    """What the next level would ask, how long it takes, whom it slows."""
    names = ", ".join(deeper.checks[:3]) + (", ..." if len(deeper.checks) > 3 else "")
    count = f"{len(deeper.checks)} check{'s' if len(deeper.checks) > 1 else ''}"
    slows = "; ".join(f"{fold(nodes)} carry {job}" for job, nodes in deeper.busy.items())
    return (
        f"level {deeper.level} asks {count} more ({names}), at most"
        f" {describe_duration(deeper.at_most_s)} a node"
        + (f"; it loads GPUs and links beside a job: {slows}" if slows else "")
    )


def _deeper_command(deeper: DeeperLook, nodes: Sequence[str], status: JobStatus | None) -> str:
    about = status.job.name if status else f"-w '{fold(nodes)}'"
    return f"brctl dx {about} --level {deeper.level}"


def _next_steps(verdict: Verdict, others: Sequence[Verdict] = ()) -> tuple[str, ...]:
    """What to type now; the others that the same playbook mends are fixed in the same run."""
    why = f"brctl why {verdict.id}"
    if verdict.fault is FaultClass.NO_FAULT:
        return ()
    fix = move_command(verdict)
    if not fix or not _is_sure(verdict):
        return (why,)
    alike = [o.id for o in others if o.playbook == verdict.playbook and _is_sure(o)]
    return (" ".join([fix, *alike]), why)


def _is_sure(verdict: Verdict) -> bool:
    return verdict.confidence is not Confidence.LOW


def _scene_line(status: JobStatus | None, nodes: Sequence[str], seconds: float) -> str:
    if status is None:
        return f"{len(nodes)} nodes looked at in {seconds:.1f} s: {fold(nodes)}"
    alive = sum(view.alive is True for view in status.ranks)
    return (
        f"job {status.job.name}: {_state(status)}, step"
        f" {status.step if status.step is not None else '?'}, {alive} of {len(status.ranks)} ranks"
        f" alive; {len(nodes)} nodes looked at in {seconds:.1f} s"
    )


def _state(status: JobStatus) -> str:
    states = {True: "stands still", False: "makes progress", None: "state not known"}
    return "has ended" if status.ended else late_line(status) or states[status.stalled]


def late_line(status: JobStatus) -> str:
    """That a job waits longer for a step than it used to; "" where it does not."""
    usual_s = late_step_s(status)
    if usual_s is None or status.progress_age_s is None:
        return ""
    return f"no progress for {status.progress_age_s:.1f} s, a step usually takes {usual_s:.3g} s"


def look_again_line(status: JobStatus, again: LookAgain) -> str:
    """Why a job that goes on is looked at again."""
    why = {
        Unsettled.LATE: late_line(status),
        Unsettled.OVERDUE: f"no progress for {status.progress_age_s or 0.0:.1f} s",
        Unsettled.SILENT: f"{fold(status.silent)} gave no answer, and the job makes progress",
        Unsettled.YOUNG: "too few steps were made to tell what is usual",
    }
    return f"{why[again.why]}; looking again in {again.in_s:.0f} s"


def summary_lines(verdict: Verdict) -> list[str]:
    """A verdict in three lines."""
    where = " ".join([fold(verdict.nodes), *_devices(verdict)]) if verdict.suspects else "-"
    lines = [
        f"{verdict.id}  {verdict.confidence.value.upper()} {verdict.probability:.2f}"
        f"  {verdict.fault.value}  {where}",
        f"what:   {verdict.title}",
        *(f"where:  {line}" for line in _places(verdict)),
        f"do:     {move_line(verdict)}",
        *(f"but:    {printable(text, 140)}" for text in _against_calm(verdict)),
    ]
    if verdict.fault in (FaultClass.UNKNOWN, FaultClass.NO_FAULT) and verdict.alternatives:
        leads = (
            f"{a.fault.value} {fold(a.nodes) or '-'} {a.probability:.2f}"
            for a in verdict.alternatives
        )
        lines.append(f"leads:  {', '.join(leads)}")
    lines += [f"ask:    {printable(command, 140)}" for command in verdict.settle]
    if verdict.cost_if_wrong:
        lines.append(f"wrong?  costs {verdict.cost_if_wrong}")
    if verdict.not_checked:
        lines.append(f"unseen: {len(verdict.not_checked)} things were not looked at; see `why`")
    return lines


def _against_calm(verdict: Verdict) -> Iterable[str]:
    """What `status` shows of the nodes of a job that nothing is wrong with."""
    if verdict.fault is FaultClass.NO_FAULT:
        yield from (f"{e.source}: {e.text}" for e in verdict.evidence if e.kind == AILING)


def _places(verdict: Verdict) -> Iterable[str]:
    """Where to read, in a verdict that blames no node."""
    if verdict.places:
        said = (f"{_ranks(p.ranks)} on {printable(p.node, 60)}" for p in verdict.places[:3])
        more = f" and {len(verdict.places) - 3} more nodes" if len(verdict.places) > 3 else ""
        yield f"it came to light on {', '.join(said)}{more}; no machine is blamed"


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank{'s' if len(ranks) > 1 else ''} {', '.join(map(str, ranks))}"


def _devices(verdict: Verdict) -> Iterable[str]:
    return (printable(device, 60) for device in verdict.called)


def _ids(verdict: Verdict) -> list[str]:
    """The ids behind the names, for whoever has to give one to another tool."""
    found = ((str(part), part.device.partition(":")[2]) for part in verdict.parts if part.name)
    named = [f"{name} is {own_id}" for name, own_id in found if not own_id.startswith("index-")]
    return [f"devices:   {printable('; '.join(named))}"] if named else []


def why_page(verdict: Verdict, state: str, note: str) -> Page:
    """The answer of `brctl why`: the chain, what was ruled out, what was not looked at."""
    lines = [
        f"{verdict.id}  {verdict.fault.value}  {fold(verdict.nodes) or '-'}: {verdict.title}",
        *(f"where:     {line}" for line in _places(verdict)),
        *_ids(verdict),
        f"do:        {move_line(verdict)}",
        "because, in order:",
        columns(list(_chain_rows(verdict.evidence, verdict.decided_at)), " "),
    ]
    lines += [
        f"ruled out: {out.fault.value}, {printable(out.why, 100)}" for out in verdict.ruled_out
    ]
    lines += [
        f"instead:   {other.fault.value} {fold(other.nodes)} {other.probability:.2f}"
        for other in verdict.alternatives
    ]
    lines += [f"ask:       {printable(command, 140)}" for command in verdict.settle]
    lines += _not_checked(verdict)
    word = verdict.confidence
    lines.append(
        f"{word.value.upper()} = {verdict.probability:.2f}: {_CONFIDENCE_IS[word]}."
        f" Decided {utc_text(verdict.decided_at)}."
        f" State: {state}{f' ({printable(note, 80)})' if note else ''}."
    )
    body = {"verdict": verdict_document(verdict), "state": state, "note": note or None}
    return Page(
        "Verdict", body, "\n".join(lines), ExitCode.OK, verdict.nodes, (),
        _next_after_why(verdict, state, note), _chain_table(verdict),
    )  # fmt: skip


def _chain_table(verdict: Verdict) -> tuple[Mapping[str, Json], ...]:
    """The chain as `-o csv` prints it."""
    chain = enumerate(verdict.evidence, start=1)
    return tuple({"verdict": verdict.id, **evidence_document(n, item)} for n, item in chain)


def _next_after_why(verdict: Verdict, state: str, note: str) -> tuple[str, ...]:
    """What is left to do once the explanation was read."""
    if state == "open":
        return tuple(step for step in _next_steps(verdict) if " why " not in step)
    return (f"brctl play show {note}",) if note.startswith("R-") else ()


def _chain_rows(chain: Sequence[Evidence], day: datetime) -> Iterable[tuple[str, ...]]:
    """The chain without what only clears (it is summed up as ruled out) and with little context.

    A thousand ranks that say the same of their nodes are one row, under the number of the first.
    """
    shown = list(_shown(chain))
    said = ((_chain_key(item), item.subject.node, item.text) for _, item in shown)
    for each in fold_alike(said):
        number, item = shown[each.first]
        at = utc_text(item.at, day) if item.at else "-"
        nodes = fold(each.nodes) if any(each.nodes) else ""
        text = printable(f"{nodes} {each.text}".strip(), 140)
        yield (str(number), each.key[0], at, *each.key[1:], text)


def _shown(chain: Sequence[Evidence]) -> Iterable[tuple[int, Evidence]]:
    context = 0
    for number, item in enumerate(chain, start=1):
        plain = item.weight is Weight.CONTEXT and item.role is Role.CONTEXT
        context += plain
        if item.weight is not Weight.CLEARS and not (plain and context > CONTEXT_SHOWN):
            yield number, item


def _chain_key(item: Evidence) -> tuple[str, str, str]:
    """Sign, what it says, and where it was read."""
    follows = item.role in (Role.VICTIM, Role.TEARDOWN)
    sign = "." if follows else _SIGN[item.weight]
    says = "follows" if follows else _SAYS[item.weight]
    return sign, says, item.source


def _not_checked(verdict: Verdict) -> list[str]:
    """One line for each reason: a dead node is one of them, not twenty checks."""
    found: dict[tuple[Subject, str], list[str]] = {}
    for gap in verdict.not_checked:
        found.setdefault((gap.subject, gap.why), []).append(gap.what)
    said = (
        ((subject.device, checks_text(names)), subject.node, why)
        for (subject, why), names in found.items()
    )
    lines = []
    for each in fold_alike(said):
        device, checks = each.key
        subject = Subject(fold(each.nodes) if any(each.nodes) else "", device)
        lines.append(f"not seen:  {printable(str(subject), 60)} {checks}: {printable(each.text)}")
    more = len(lines) - GAPS_SHOWN
    return [*lines[:GAPS_SHOWN], f"not seen:  {more} more (-o json)"] if more > 0 else lines


def checks_text(names: Sequence[str]) -> str:
    """One check by its name, several as their number and the first."""
    if len(names) == 1:
        return names[0]
    return f"{len(names)} checks ({', '.join(names[:3])}{', ...' if len(names) > 3 else ''})"


def verdict_list_page(rows: Sequence[tuple[Verdict, str]]) -> Page:
    """The answer of `brctl verdict list`: id, state, confidence, class, nodes, time."""
    table = [("ID", "STATE", "CONF", "CLASS", "DECIDED", "JOB", "NODES")]
    for verdict, state in rows:
        table.append(
            (
                verdict.id,
                state,
                verdict.confidence.value,
                verdict.fault.value,
                utc_text(verdict.decided_at),
                verdict.job or "-",
                fold(verdict.nodes) or "-",
            )
        )
    documents = tuple({**verdict_document(verdict), "state": state} for verdict, state in rows)
    text = columns(table) if rows else "no verdicts yet"
    names = tuple(verdict.id for verdict, _ in rows)
    return Page("VerdictList", {"verdicts": list(documents)}, text, ExitCode.OK, names, documents)
