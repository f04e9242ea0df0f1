"""Slurm's command line: what to run and what its answers mean. Arguments are lists, no shell."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from brctl.backends.contract import Cordon, Label
from brctl.model.jobs.job import Job
from brctl.model.nodeset import fold

STANDBY_REASON = "brctl standby"
"""Standbys sit drained in the job's own partition: a Slurm job never spans two partitions."""

# One line per node and partition; `|` cannot stand in a node's name, and the reason comes last.
NODES = ("sinfo", "-h", "-N", "-O", "NodeList:|,StateLong:|,UserLong:|,Timestamp:|,Reason:300")
PARTITIONS = ("sinfo", "-h", "-N", "-o", "%N|%R")
_OWNED = re.compile(r"\[(brctl:[^\]\s]+)\] ?(.*)", re.DOTALL)
COMMENTS = ("sinfo", "-h", "-N", "-O", "NodeList:|,Comment:4000")
_LABEL = re.compile(r" ?\[label ([\w.-]+)=([\w.-]*) by ([^\]\s]*)(?: was ([\w.-]+))?\]")
# sinfo marks nodes that do not respond and so on by a letter behind the state.
_OUT_OF_SERVICE = re.compile(r"(drain|down|fail|maint)")
_SILENT = "*"
_OWN_REASON = "Not responding"
"""Slurm's words for a node it lost; with ReturnToService=1 such a node comes back by itself."""


def drain(nodes: Sequence[str], owner: str, reason: str) -> tuple[str, ...]:
    """Take nodes out of service; the owner travels in front of the reason."""
    text = f"[{owner}] {reason}".replace("\n", " ")
    return ("scontrol", "update", f"NodeName={fold(nodes)}", "State=DRAIN", f"Reason={text}")


def resume(nodes: Sequence[str]) -> tuple[str, ...]:
    """Put nodes back into service."""
    return ("scontrol", "update", f"NodeName={fold(nodes)}", "State=RESUME")


def parse_comments(text: str) -> dict[str, str]:
    """What `COMMENTS` printed; "" where nobody wrote one."""
    rows = [line.split("|", 1) for line in text.splitlines() if "|" in line]
    return {row[0].strip(): re.sub(r"^(none|\(null\))$", "", row[1].strip()) for row in rows}


def label_in(comment: str, key: str) -> Label | None:
    """A label that brctl keeps in a node's comment: `[label KEY=VALUE by OWNER was FORMER]`."""
    for found in _LABEL.finditer(comment):
        if found[1] == key:
            return Label(found[2], found[3], found[4])
    return None


def with_label(comment: str, key: str, label: Label | None) -> str:
    """The comment with a label set or taken away; what people wrote there stays."""
    kept = _LABEL.sub(lambda found: "" if found[1] == key else found[0], comment).strip()
    if label is None:
        return kept
    was = f" was {label.former}" if label.former else ""
    return f"{kept} [label {key}={label.value} by {label.owner}{was}]".strip()


def set_comment(node: str, comment: str) -> tuple[str, ...]:
    """Replace a node's comment."""
    return ("scontrol", "update", f"NodeName={node}", f"Comment={comment}")


def jobs_on(node: str) -> tuple[str, ...]:
    """List the jobs that hold a node."""
    return ("squeue", "-h", "-w", node, "-O", "JobID:|,UserName:|,State:|")


def parse_jobs_on(text: str) -> tuple[str, ...]:
    """One phrase a job."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    return tuple(f"job {row[0]} of {row[1]} is {row[2]}" for row in rows if len(row) >= 3)


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """One line of squeue."""

    id: str
    state: str
    incarnation: str
    reason: str


def queue(name: str, submitters: Collection[int]) -> tuple[str, ...]:
    """List a job's entries in the queue; others may give theirs its name, and any comment."""
    users = ",".join(map(str, sorted(submitters)))
    return (
        "squeue",
        "-h",
        "-n",
        name,
        "-u",
        users,
        "-O",
        "JobID:|,State:|,Comment:100|,Reason:200",
    )


def parse_queue(text: str) -> tuple[QueuedJob, ...]:
    """What `queue` printed; a job that is only completing has ended as far as we care."""
    rows = [[cell.strip() for cell in line.split("|")] for line in text.splitlines()]
    found = [QueuedJob(*row[:4]) for row in rows if len(row) >= 4]
    return tuple(job for job in found if job.state != "COMPLETING")


def submit(job: Job, name: str, incarnation: str) -> tuple[str, ...]:
    """Queue the batch program, which sbatch reads from its stdin; never queued again by itself."""
    site = (f"--{key}={value}" if value else f"--{key}" for key, value in job.sbatch.items())
    return (
        "sbatch", "--parsable", f"--job-name={name}", f"--nodelist={fold(job.nodes)}",
        f"--nodes={len(job.nodes)}", f"--ntasks-per-node={job.ranks_per_node}",
        f"--comment={incarnation}", f"--output={job.log_dir / 'slurm-%j.log'}", "--no-requeue",
        *site,
    )  # fmt: skip


def signal_ranks(job_id: str, number: str) -> tuple[str, ...]:
    """Signal the ranks of a job, not its batch program."""
    return ("scancel", f"--signal={number}", job_id)


def cancel(job_id: str) -> tuple[str, ...]:
    """Take a job out of the queue."""
    return ("scancel", job_id)


def parse_cordons(text: str) -> dict[str, Cordon]:
    """The nodes out of service; standbys that wait drained are not cordoned, while they answer."""
    found: dict[str, Cordon] = {}
    for line in text.splitlines():
        cells = line.split("|", 4)
        if len(cells) < 5:
            continue
        name, state, user, since, reason = (cell.strip() for cell in cells)
        waiting = reason.startswith(STANDBY_REASON) and not state.endswith(_SILENT)
        if _OUT_OF_SERVICE.search(state.lower()) and not waiting:
            found[name] = _cordon(name, state, user, since, reason)
    return found


def parse_standbys(text: str) -> frozenset[str]:
    """The nodes that wait drained as standbys."""
    rows = [line.split("|", 4) for line in text.splitlines()]
    return frozenset(
        row[0].strip() for row in rows if len(row) == 5 and row[4].startswith(STANDBY_REASON)
    )


def parse_idle(text: str) -> tuple[str, ...]:
    """The nodes that nothing runs on; sinfo names one once for every partition it is in."""
    rows = [[cell.strip() for cell in line.split("|", 4)] for line in text.splitlines()]
    return tuple(dict.fromkeys(row[0] for row in rows if len(row) == 5 and row[1] == "idle"))


def parse_partitions(text: str) -> dict[str, set[str]]:
    """The partitions of every node."""
    found: dict[str, set[str]] = {}
    for line in text.splitlines():
        name, _, partition = line.strip().partition("|")
        found.setdefault(name, set()).add(partition)
    return found


def _cordon(name: str, state: str, user: str, since: str, reason: str) -> Cordon:
    owned = _OWNED.match(reason)
    if owned:
        return Cordon(name, owned[1], owned[2], _moment(since))
    # Slurm itself marks nodes down without a person.
    lasting = "drain" in state.lower() or not reason.startswith(_OWN_REASON)
    who = re.sub(r"\(\d+\)$", "", user) if lasting and user not in ("", "Unknown") else "slurm"
    return Cordon(name, who, reason if reason != "none" else state, _moment(since), lasting)


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
