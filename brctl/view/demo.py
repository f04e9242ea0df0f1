"""The demo's account: what was broken, what was believed, what was done, how long it took."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from brctl.model.exit_codes import ExitCode
from brctl.model.verdict import Verdict
from brctl.view.documents import verdict_document
from brctl.view.page import Page
from brctl.view.text import columns


@dataclass(frozen=True, slots=True)
class DemoAccount:
    """The facts of one demo; None where it did not come to that."""

    fault: str
    expected: str
    node: str
    subject: str
    verdict: Verdict | None
    run: str | None
    run_result: str | None
    playbook_steps: Sequence[str]
    checkpoint: str | None
    old_step: int | None
    first_new_step: int | None
    replayed_step: int | None
    losses: tuple[float, float] | None
    seconds: Mapping[str, float]
    named_right: bool
    trained_on: bool


def demo_page(account: DemoAccount) -> Page:
    """The answer of `brctl lab demo`: exit 0 only when both halves of the promise were kept."""
    verdict = account.verdict
    losses = account.losses
    body = {
        "fault": account.fault,
        "expected_class": account.expected,
        "truth": {"node": account.node, "subject": account.subject or None},
        "verdict": verdict_document(verdict) if verdict else None,
        "plan": {"playbook": verdict.playbook if verdict else None,
                 "steps": list(account.playbook_steps), "run": account.run,
                 "result": account.run_result},
        "checkpoint": account.checkpoint,
        "old_step": account.old_step,
        "first_new_step": account.first_new_step,
        "losses": None if losses is None else {
            "step": account.replayed_step, "before": losses[0], "after": losses[1],
            "equal": losses[0] == losses[1]},
        "seconds": {name: round(value, 2) for name, value in account.seconds.items()},
        "named_right": account.named_right,
        "trained_on": account.trained_on,
    }  # fmt: skip
    right = account.named_right and account.trained_on
    code = ExitCode.OK if right else ExitCode.CRITICAL if verdict else ExitCode.UNKNOWN
    return Page("LabDemo", body, "\n".join(_lines(account)), code)


def _lines(account: DemoAccount) -> list[str]:
    verdict = account.verdict
    said = f"{verdict.fault.value} {','.join(verdict.nodes) or 'no node'}" if verdict else "nothing"
    losses = account.losses
    rows = [
        ("fault", f"{account.fault} on {account.node}"),
        ("verdict", f"{said} ({'right' if account.named_right else 'WRONG'})"),
        ("run", f"{account.run or '-'} {account.run_result or 'not started'}"),
        ("checkpoint", account.checkpoint or "-"),
        (
            "training",
            f"passed its old step {account.old_step}"
            if account.first_new_step is not None
            else f"did NOT pass its old step {account.old_step}",
        ),
    ]
    if losses:
        equal = "equal, bit by bit" if losses[0] == losses[1] else "NOT equal"
        rows.append(
            (
                "loss",
                f"step {account.replayed_step}: {losses[0]:.9f} before, {losses[1]:.9f} after: {equal}",
            )
        )
    rows.append(("seconds", "  ".join(f"{k} {v:.1f}" for k, v in account.seconds.items())))
    return columns(rows).splitlines()
