"""The demo's account: what was broken, what was believed, what was done, how long it took."""

from brctl.model.demo import DemoResult
from brctl.model.exit_codes import ExitCode
from brctl.view.documents import verdict_document
from brctl.view.notices.page import Page
from brctl.view.text import columns


def demo_page(result: DemoResult) -> Page:
    """The answer of `brctl lab demo`: exit 0 only when both halves of the promise were kept."""
    verdict = result.verdict
    losses = result.losses
    body = {
        "fault": result.fault,
        "expected_class": result.expected,
        "truth": {"node": result.node, "subject": result.subject or None},
        "verdict": verdict_document(verdict) if verdict else None,
        "plan": {"playbook": verdict.playbook if verdict else None,
                 "steps": list(result.steps), "run": result.run,
                 "result": result.run_result},
        "checkpoint": None if result.checkpoint is None else {
            "path": result.checkpoint, "step": result.checkpoint_step},
        "old_step": result.old_step,
        "first_new_step": result.first_new_step,
        "losses": None if losses is None else {
            "step": result.replayed_step, "before": losses[0], "after": losses[1],
            "equal": losses[0] == losses[1]},
        "seconds": {name: round(value, 2) for name, value in result.seconds.items()},
        "moments": [{"what": m.what, "seconds": m.seconds} for m in result.moments],
        "named_right": result.named_right,
        "trained_on": result.trained_on,
    }  # fmt: skip
    right = result.named_right and result.trained_on
    code = ExitCode.OK if right else ExitCode.CRITICAL if verdict else ExitCode.UNKNOWN
    return Page("LabDemo", body, "\n".join(_lines(result)), code)


def _lines(result: DemoResult) -> list[str]:
    verdict = result.verdict
    found = (
        f"{verdict.fault.value} {','.join(verdict.nodes) or 'no node'}" if verdict else "nothing"
    )
    losses = result.losses
    rows = [
        ("fault", f"{result.fault} on {result.node}"),
        ("verdict", f"{found} ({'right' if result.named_right else 'WRONG'})"),
        ("run", f"{result.run or '-'} {result.run_result or 'not started'}"),
        ("checkpoint", result.checkpoint or "-"),
        (
            "training",
            f"passed its old step {result.old_step}"
            if result.first_new_step is not None
            else f"did NOT pass its old step {result.old_step}",
        ),
    ]
    if losses:
        equal = "equal, bit by bit" if losses[0] == losses[1] else "NOT equal"
        twice = f"{losses[0]:.9f} before, {losses[1]:.9f} after"
        rows.append(("loss", f"step {result.replayed_step}: {twice}: {equal}"))
    rows.append(("seconds", "  ".join(f"{k} {v:.1f}" for k, v in result.seconds.items())))
    times = [f"{m.seconds:8.2f} s  {m.what}" for m in result.moments]
    return [*columns(rows).splitlines(), *(["after the fault", *times] if times else [])]
