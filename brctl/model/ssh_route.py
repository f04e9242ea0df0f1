"""How one node would be reached, looked up without reaching it."""

from dataclasses import dataclass
from enum import StrEnum


class KeyTrust(StrEnum):
    """What known_hosts says of a node's host key."""

    TRUSTED = "trusted"
    AUTHORITY = "authority"
    MISSING = "missing"
    REVOKED = "revoked"
    LEFT_TO_SSH = "left to ssh"
    NOT_NEEDED = "not needed"


@dataclass(frozen=True, slots=True)
class SshRoute:
    """One node's transport and host key.

    Attributes:
        transport: Which one the node gets.
        why: Because of which setting or line.
        key: Whether a key of it is known.
    """

    node: str
    transport: str
    why: str
    key: KeyTrust
