"""What srun says about itself on stderr, between the lines of the command, and what it means."""

import re

from brctl.model.command import Outcome

_OWN = re.compile(rb"(srun|slurmstepd(-\S+)?): ")
_TASK_ENDED = re.compile(r"task 0: ")

# Slurm 20 to 24, in the order they are looked for.
MEANINGS: tuple[tuple[str, Outcome], ...] = (
    (r"nodes are busy|node not available|Unable to allocate|Requested node configuration|"
     r"currently unavailable|Required partition", Outcome.NOT_AVAILABLE),
    (r"Invalid node|Unable to contact|Communication connection failure|Connection refused|"
     r"[Ll]aunch.* failed|timed out", Outcome.UNREACHABLE),
    (r"[Pp]ermission denied|Invalid account|Invalid user|not permitted|Invalid job credential",
     Outcome.AUTHENTICATION_FAILED),
)  # fmt: skip
_CUT_SHORT = re.compile(r"Node failure|CANCELLED|[Jj]ob step aborted|forcing job termination")


def split_stderr(raw: bytes, mark: bytes) -> tuple[bytes, str]:
    """The command's own stderr, and srun's words as text.

    A node can forge srun's words, but only to make itself look worse.
    """
    command_lines: list[bytes] = []
    srun_lines: list[bytes] = []
    for line in raw.splitlines(keepends=True):
        if line.rstrip() == mark:
            continue
        (srun_lines if _OWN.match(line) else command_lines).append(line)
    return b"".join(command_lines), b"".join(srun_lines).decode("utf-8", "replace")


def ended_by_itself(status: int, srun_text: str) -> bool:
    """Whether the exit status is the command's own and not srun's."""
    return (status == 0 or bool(_TASK_ENDED.search(srun_text))) and not _CUT_SHORT.search(srun_text)


def meaning(srun_text: str) -> tuple[Outcome, str]:
    """What became of a command that never began, with srun's words for it."""
    lines = [line.partition(": ")[2].strip() for line in srun_text.splitlines()]
    for pattern, outcome in MEANINGS:
        found = next((line for line in lines if re.search(pattern, line)), None)
        if found is not None:
            return outcome, found[:200]
    return Outcome.UNREACHABLE, (lines[-1][:200] if lines else "srun ended without a word")
