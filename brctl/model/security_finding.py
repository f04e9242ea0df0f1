"""One thing that decides who can act as brctl, read its state or turn its answers."""

from dataclasses import dataclass

from brctl.model.sweeps.sweep import Health


@dataclass(frozen=True, slots=True)
class SecurityFinding:
    """What was looked at, and what to do about it.

    Attributes:
        topic: `configuration`, `state`, `ssh-key`, ...: what its kind of trouble is.
        subject: The file, folder, variable or node.
        text: What was found.
        why: What somebody could do with it; "" when all is well.
        command: What to type; "" when nothing is to do.
    """

    health: Health
    topic: str
    subject: str
    text: str
    why: str = ""
    command: str = ""
