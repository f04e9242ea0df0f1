"""How a sweep becomes root on a node, where the login is not."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RootAccess:
    """What the login may do as root.

    Attributes:
        prefix: Words before what runs as root, such as `sudo -n`; none for a login that is root.
        single_commands: Only the `root_command` of each check runs as root, as the lines of
            `brctl config sudoers` allow; otherwise all probes of a sweep in which one needs root.
    """

    prefix: tuple[str, ...] = ()
    single_commands: bool = False
