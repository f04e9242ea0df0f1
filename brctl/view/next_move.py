"""The decision tree's next move as every surface prints it: in words, and as a command to type."""

from brctl.model.fault import Action
from brctl.model.log_verdict import LogVerdict
from brctl.model.verdict import Verdict


def move_name(shown: Verdict | LogVerdict) -> str:
    """`swap (playbook swap-and-resume)`, or `free-space (a person)`."""
    if shown.playbook:
        return f"{shown.action.value} (playbook {shown.playbook})"
    return shown.action.value + (" (a person)" if shown.action is not Action.NONE else "")


def move_line(shown: Verdict | LogVerdict) -> str:
    """The move and why it is the next."""
    return f"{move_name(shown)}: {shown.say}" if shown.say else move_name(shown)


def move_command(verdict: Verdict) -> str:
    """What to type for it; "" where a person must act otherwise."""
    return f"brctl fix {verdict.id}" if verdict.playbook else ""
