"""RUNS ON THE NODE. Starts, stops and finds the ranks of one job; installs nothing.

Sent over SSH to `python3 -I -` with a last line that calls `main` with one JSON object. Python 3.8,
standard library only. A rank runs in a session of its own under a small supervisor, which outlives
the SSH session and writes down how the rank ended. Nothing is ever signalled by number alone: a
process must have the recorded start time and carry BRCTL_JOB and BRCTL_NODE in its environment.
"""

# ruff: noqa: T201 - its answer goes to stdout
from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
import traceback
from typing import Any

GRACE_AFTER_KILL_S = 5.0


def process_file(log_dir: str, rank: int) -> str:
    """Where the running process of a rank is recorded."""
    return os.path.join(log_dir, f"rank-{rank:05d}.process.json")


def exit_file(log_dir: str, rank: int) -> str:
    """Where the end of a rank is recorded."""
    return os.path.join(log_dir, f"rank-{rank:05d}.exit.json")


def write_json(path: str, value: dict[str, Any]) -> None:
    """Replace a file so that a reader sees the old or the new content, never half."""
    partial = f"{path}.{os.getpid()}"
    with open(partial, "w") as stream:
        json.dump(value, stream)
    os.replace(partial, path)


def read_json(path: str) -> dict[str, Any] | None:
    """The object in a file, or None when there is none or it is torn."""
    try:
        with open(path) as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def start_ticks(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as stream:
            fields = stream.read().rpartition(")")[2].split()
    except OSError:
        return None
    # A zombie holds its number but runs nothing.
    return None if fields[0] in ("Z", "X") else int(fields[19])


def environment_of(pid: int) -> set[bytes]:
    """The environment a process was started with, as bytes; empty when it cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as stream:
            return set(stream.read().split(b"\0"))
    except OSError:
        return set()


def marks(job: str, node: str) -> set[bytes]:
    """What the environment of every process of this job on this node holds."""
    return {("BRCTL_JOB=" + job).encode(), ("BRCTL_NODE=" + node).encode()}


def is_rank(record: dict[str, Any], job: str, node: str) -> bool:
    """Whether a recorded rank is still the very process that was started."""
    pid = record.get("pid")
    if not isinstance(pid, int) or pid <= 1:
        return False
    return start_ticks(pid) == record.get("start_ticks") and marks(job, node) <= environment_of(pid)


def processes_of(job: str, node: str) -> list[int]:
    """Every process of this job on this node: ranks, and children that inherited the marks."""
    wanted = marks(job, node)
    found = []
    for name in os.listdir("/proc"):
        pid = int(name) if name.isdigit() else 0
        if pid and wanted <= environment_of(pid) and start_ticks(pid) is not None:
            found.append(pid)
    return found


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """Start every rank of this node that does not run yet."""
    for folder in (asked["log_dir"], asked["progress_dir"], asked["checkpoint_dir"]):
        os.makedirs(folder, exist_ok=True)
    started: list[int] = []
    for local_rank, rank in enumerate(asked["ranks"]):
        record = read_json(process_file(asked["log_dir"], rank))
        if record and is_rank(record, asked["job"], asked["node"]):
            if record.get("incarnation") != asked["incarnation"]:
                return {
                    "error": f"rank {rank} of an earlier start still runs as pid {record['pid']}",
                    "started": started,
                }
            started.append(rank)
            continue
        forget(asked, rank)
        launch(asked, rank, local_rank)
        started.append(rank)
    return {"started": started}


def forget(asked: dict[str, Any], rank: int) -> None:
    """Put the traces of an earlier start aside, so that nobody takes them for this one's."""
    for path in (
        process_file(asked["log_dir"], rank),
        exit_file(asked["log_dir"], rank),
        os.path.join(asked["progress_dir"], f"rank-{rank:05d}.json"),
    ):
        if os.path.exists(path):
            os.unlink(path)
    log = log_file(asked, rank)
    if os.path.exists(log):
        os.replace(log, log + ".1")


def log_file(asked: dict[str, Any], rank: int) -> str:
    """Where a rank writes."""
    return os.path.join(asked["log_dir"], f"rank-{rank:05d}.log")


def launch(asked: dict[str, Any], rank: int, local_rank: int) -> None:
    """Start one rank and return once its process is recorded."""
    ready_read, ready_write = os.pipe()
    if os.fork() == 0:
        os.close(ready_read)
        supervise(asked, rank, local_rank, ready_write)
    os.close(ready_write)
    os.read(ready_read, 1)
    os.close(ready_read)


def supervise(asked: dict[str, Any], rank: int, local_rank: int, ready: int) -> None:
    """In the child: leave the SSH session, start the rank, wait for it, write how it ended."""
    try:
        os.setsid()
        record_rank(asked, rank, local_rank, ready)
    except BaseException:  # noqa: BLE001 - a supervisor that dies silently loses the rank
        traceback.print_exc()
    finally:
        os._exit(0)


def record_rank(asked: dict[str, Any], rank: int, local_rank: int, ready: int | None) -> int:
    """Start a rank with its log as output, record its process, wait, record its end."""
    null = os.open(os.devnull, os.O_RDWR)
    log = os.open(log_file(asked, rank), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o640)
    for descriptor, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(descriptor, target)
    for descriptor in (null, log):
        os.close(descriptor)
    pid = os.fork()
    if pid == 0:
        become_rank(asked, rank, local_rank, own_session=ready is not None)
    write_json(
        process_file(asked["log_dir"], rank),
        {
            "rank": rank,
            "pid": pid,
            "start_ticks": start_ticks(pid),
            "node": asked["node"],
            "started_at": time.time(),
            "incarnation": asked["incarnation"],
            "job": asked["job"],
        },
    )
    if ready is not None:
        os.close(ready)
    status = os.waitpid(pid, 0)[1]
    ended = os.WEXITSTATUS(status) if os.WIFEXITED(status) else -os.WTERMSIG(status)
    write_json(
        exit_file(asked["log_dir"], rank),
        {
            "rank": rank,
            "exit_status": ended,
            "at": time.time(),
            "incarnation": asked["incarnation"],
        },
    )
    return ended


def become_rank(asked: dict[str, Any], rank: int, local_rank: int, *, own_session: bool) -> None:
    """In the grandchild: be the training process; a scheduler's step keeps its own session."""
    try:
        if own_session:
            os.setsid()
        for number in (signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        environment = dict(os.environ)
        environment.update(asked["environment"])
        environment.update(
            {
                "RANK": str(rank),
                "LOCAL_RANK": str(local_rank),
                "WORLD_SIZE": str(asked["world_size"]),
                "MASTER_ADDR": asked["master_addr"],
                "MASTER_PORT": str(asked["master_port"]),
                "BRCTL_JOB": asked["job"],
                "BRCTL_NODE": asked["node"],
                "BRCTL_PROGRESS_DIR": asked["progress_dir"],
                "BRCTL_CHECKPOINT_DIR": asked["checkpoint_dir"],
                "BRCTL_RESUME_FROM": asked["resume_from"],
            }
        )
        os.chdir(asked["workdir"])
        os.execvpe(asked["launch"][0], asked["launch"], environment)  # noqa: S606 - no shell wanted
    except OSError as error:
        sys.stderr.write(f"brctl: cannot start rank {rank}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def stop(asked: dict[str, Any]) -> dict[str, Any]:
    """End every process of the job on this node: SIGTERM, the grace, SIGKILL."""
    job, node = asked["job"], asked["node"]
    signal_all(processes_of(job, node), signal.SIGTERM)
    if not wait_until_gone(job, node, asked["grace_s"]):
        late = [rank for rank in asked["ranks"] if rank_record(asked, rank)]
        signal_all(processes_of(job, node), signal.SIGKILL)
        wait_until_gone(job, node, GRACE_AFTER_KILL_S)
        stuck = [rank for rank in late if rank_record(asked, rank)]
        killed = [rank for rank in late if rank not in stuck]
    else:
        killed, stuck = [], []
    stopped = [rank for rank in asked["ranks"] if rank not in killed + stuck]
    return {"stopped": stopped, "killed": killed, "stuck": stuck}


def rank_record(asked: dict[str, Any], rank: int) -> dict[str, Any] | None:
    """The record of a rank that still runs, else None."""
    record = read_json(process_file(asked["log_dir"], rank))
    return record if record and is_rank(record, asked["job"], asked["node"]) else None


def signal_all(pids: list[int], number: int) -> None:
    """Signal the process groups of these processes; a stopped process must run to see SIGTERM."""
    groups = set()
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            groups.add(os.getpgid(pid))
    for group in groups - {os.getpgrp()}:
        for each in (number, signal.SIGCONT):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, each)


def wait_until_gone(job: str, node: str, seconds: float) -> bool:
    """Whether every process of the job left this node in time."""
    deadline = time.monotonic() + seconds
    while processes_of(job, node):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def status(asked: dict[str, Any]) -> dict[str, Any]:
    """Which ranks run, of which start, and how the others ended."""
    ranks = []
    for rank in asked["ranks"]:
        record = rank_record(asked, rank)
        ended = read_json(exit_file(asked["log_dir"], rank)) or {}
        ranks.append(
            {
                "rank": rank,
                "alive": record is not None,
                "incarnation": record.get("incarnation") if record else None,
                "exit_status": ended.get("exit_status"),
            }
        )
    return {"ranks": ranks}


def batch(asked: dict[str, Any]) -> dict[str, Any]:
    """As Slurm's batch program: give every task this program and what it is to start."""
    import subprocess

    asking = json.dumps({"do": "hold", "requests": asked["requests"]})
    program = asked["program"] + f"\nraise SystemExit(main({asking!r}))\n"
    command = [
        "srun",
        f"--ntasks={asked['tasks']}",
        f"--ntasks-per-node={asked['ranks_per_node']}",
        "--kill-on-bad-exit=0",
        "--input=all",
        asked["python"],
        "-I",
        "-",
    ]
    done = subprocess.run(command, input=program.encode(), check=False)
    return {"exit_status": done.returncode}


def hold(asked: dict[str, Any]) -> dict[str, Any]:
    """As one task of a Slurm step: be the rank's supervisor until the rank ends.

    Its output is the rank's log by then, so it says nothing and ends as the rank did.
    """
    request = asked["requests"][os.environ["SLURMD_NODENAME"]]
    local_rank = int(os.environ["SLURM_LOCALID"])
    rank = request["ranks"][local_rank]
    for folder in (request["log_dir"], request["progress_dir"], request["checkpoint_dir"]):
        os.makedirs(folder, exist_ok=True)
    forget(request, rank)
    # The scheduler signals the whole step; the rank obeys, its supervisor stays to write it down.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1 if record_rank(request, rank, local_rank, None) else 0)


WORK = {"start": start, "stop": stop, "status": status, "batch": batch, "hold": hold}


def main(text: str) -> int:
    """Do what one JSON object asks and print one JSON object."""
    asked = json.loads(text)
    try:
        answer = WORK[asked["do"]](asked)
    except OSError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
    return 1 if "error" in answer else 0
