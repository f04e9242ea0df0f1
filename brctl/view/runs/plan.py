"""A plan and the playbooks as people read them."""

from collections.abc import Iterable, Mapping, Sequence

from brctl.model.exit_codes import ExitCode
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Plan
from brctl.model.runs.playbook import Need, Playbook
from brctl.model.units import describe_duration
from brctl.view.notices.page import Json, Page
from brctl.view.runs.estimate import estimate_document, estimate_lines
from brctl.view.runs.way_back import planned_way_back
from brctl.view.text import columns, printable


def plan_page(plan: Plan, document: Mapping[str, Json]) -> Page:
    """The answer of `play plan`: what would change, what the guards say, who must agree."""
    lines = _changes(plan) + _waves(plan)
    for guard in plan.guards:
        sign = "ok     " if guard.ok else "REFUSED"
        lines.append(f"  {sign} {guard.kind}: {guard.sentence}   {guard.origin}")
        if guard.overridden_by:
            lines.append(printable(f"          overridden by {guard.overridden_by}"))
        if not guard.ok and guard.way_out:
            lines.append(printable(f"          way out: {guard.way_out}"))
    passed = sum(guard.ok for guard in plan.guards)
    role = f" of group {', '.join(plan.roles)}" if plan.roles else ""
    asks = "none" if plan.people is Need.NONE else f"{plan.people}{role} before {plan.gate_before}"
    lines.append(f"guards  {passed}/{len(plan.guards)} ok; approval: {asks}")
    code = ExitCode.REFUSED if plan.refused else ExitCode.OK
    lines += cost_lines(plan)
    body = {"plan": {**document, "estimate": estimate_document(plan.estimate)}}
    return Page("Plan", body, "\n".join(lines), code)


def cost_lines(plan: Plan) -> list[str]:
    """What it is expected to cost, and what takes it back."""
    if plan.estimate is None:
        cost = [f"time    at most {describe_duration(plan.longest_path_s)}"]
    else:
        cost = estimate_lines(plan.estimate)
    return [*cost, *(f"undo    {line}" for line in planned_way_back(plan))]


def _changes(plan: Plan) -> list[str]:
    """One line per change; nodes of `for_each` that change alike share one."""
    if not plan.waves:
        rows = [[c.sign.value, printable(c.subject), printable(c.what)] for c in plan.changes]
        return columns(rows).splitlines() or ["no changes"]
    alike: dict[tuple[str, str], list[str]] = {}
    for change in plan.changes:
        alike.setdefault((change.sign.value, change.what), []).append(change.subject)
    rows = [[sign, printable(_together(s)), printable(what)] for (sign, what), s in alike.items()]
    return columns(rows).splitlines() or ["no changes"]


def _together(subjects: Sequence[str]) -> str:
    """Node names folded; other objects as they are."""
    return ", ".join(dict.fromkeys(subjects)) if " " in "".join(subjects) else fold(subjects)


def _waves(plan: Plan) -> list[str]:
    """Which nodes have their turn when, and which steps some of them leave out."""
    if not plan.waves:
        return []
    turns = [f"{fold(wave)} alone" if len(wave) == 1 else fold(wave) for wave in plan.waves]
    lines = [f"  nodes   {printable(', then '.join(turns))}"]
    lines += [f"  pauses when {plan.pause}"] if plan.pause else []
    skipped: dict[tuple[str, str], list[str]] = {}
    for step in plan.steps:
        if step.skipped:
            skipped.setdefault((step.id, step.skipped), []).append(step.node)
    lines += [f"  skips   {step} on {fold(nodes)}: {printable(why)}"
              for (step, why), nodes in skipped.items()]  # fmt: skip
    return lines


def playbook_rows(playbooks: Iterable[Playbook]) -> list[dict[str, Json]]:
    """One row per playbook."""
    return [
        {
            "name": p.name,
            "risk": p.risk.value,
            "title": p.title,
            "steps": len(p.steps),
            "classes": list(p.classes),
            "min_confidence": p.min_confidence.value,
            "path": p.path,
            "sha256": p.sha256,
        }
        for p in playbooks
    ]


def playbook_list_page(playbooks: Iterable[Playbook]) -> Page:
    """The answer of `play list`."""
    rows = playbook_rows(playbooks)
    shown = [[str(r["name"]), str(r["risk"]), str(r["title"])] for r in rows]
    text = columns([["NAME", "RISK", "TITLE"], *shown])
    names = tuple(str(row["name"]) for row in rows)
    return Page("PlaybookList", {"playbooks": rows}, text, ExitCode.OK, names, tuple(rows))


def playbook_page(playbook: Playbook) -> Page:
    """The answer of `play show NAME`."""
    head = [f"{playbook.name}  {playbook.title}", f"risk {playbook.risk}  {playbook.path}"]
    head += [f"for {', '.join(playbook.classes)}"] if playbook.classes else []
    inputs = [
        [name, spec.type.value, "required" if spec.required else f"default {spec.default!r}",
         spec.help]
        for name, spec in playbook.inputs.items()
    ]  # fmt: skip
    gate = playbook.approval.gate_before if playbook.approval else ""
    steps = [
        [str(n), step.id, step.verb, step.safety.value,
         ("approval before; " if step.id == gate else "") + step.name]
        for n, step in enumerate(playbook.steps, start=1)
    ]  # fmt: skip
    each = "steps, once per node" if playbook.for_each else "steps"
    text = "\n".join([*head, "inputs", columns(inputs, "  "), each, columns(steps, "  ")])
    body: dict[str, Json] = {
        "playbook": playbook_rows([playbook])[0],
        "text": playbook.text.decode("utf-8", "replace"),
    }
    return Page("Playbook", body, text, ExitCode.OK, (playbook.name,))
