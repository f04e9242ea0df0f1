"""RUNS ON THE NODE. Starts, stops and finds the ranks of one job; installs nothing.

Sent over SSH to `python3 -I -` with what it imports and a last line that runs it with one JSON
object. Python 3.8, standard library only. A rank runs in a session of its own under a small
supervisor, which outlives the SSH session and writes down how the rank ended. Nothing is ever
signalled by number alone: see processes.py.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from typing import Any

from checks._ranks.environment import examine, job_environment, rank_environment
from checks._ranks.parked_ranks import (
    call_up,
    end_strangers,
    look,
    park,
    parked_pids,
    take_over,
    unpark,
)
from checks._ranks.processes import (
    detach_output,
    exit_file,
    locked,
    log_file,
    process_file,
    process_record,
    processes_of,
    rank_record,
    read_json,
    record_end,
    remove,
    signal_all,
    write_json,
)

GRACE_AFTER_KILL_S = 5.0


def start(asked: dict[str, Any]) -> dict[str, Any]:
    """Start every rank of this node that does not run yet; a parked process becomes its rank."""
    make_folders(asked)
    with locked(asked):
        for rank in asked["ranks"]:
            record = rank_record(asked, rank)
            if record and record.get("incarnation") != asked["incarnation"]:
                why = f"rank {rank} of an earlier start still runs as pid {record['pid']}"
                return {"error": why, "started": []}
        end_strangers(asked)
        return start_ranks(asked)


def make_folders(asked: dict[str, Any]) -> None:
    """Make the directories a rank writes to."""
    for folder in (asked["log_dir"], asked["progress_dir"], asked["checkpoint_dir"]):
        os.makedirs(folder, exist_ok=True)


def start_ranks(asked: dict[str, Any]) -> dict[str, Any]:
    """What became of each rank: running already, warm from a parked process, or cold and why."""
    running = {rank: rank_record(asked, rank) for rank in asked["ranks"]}
    warm = [rank for rank, record in running.items() if record and "parked_at" in record]
    called = {}
    for local_rank, rank in enumerate(asked["ranks"]):
        if running[rank] is None:
            keep_log(asked, rank)
            forget(asked, rank)
            called[local_rank] = call_up(asked, rank, local_rank)
    deadline, cold = time.monotonic() + asked["answer_s"], {}
    for local_rank, each in called.items():
        why = take_over(asked, each, deadline)
        if why is None:
            warm.append(each["rank"])
            continue
        forget(asked, each["rank"])
        launch(asked, each["rank"], local_rank)
        cold.update({str(each["rank"]): why} if why else {})
    return {"started": list(asked["ranks"]), "warm": warm, "cold": cold}


def forget(asked: dict[str, Any], rank: int) -> None:
    """Remove the traces of an earlier start, so that nobody takes them for this one's."""
    progress = os.path.join(asked["progress_dir"], f"rank-{rank:05d}.json")
    log_dir = asked["log_dir"]
    remove([process_file(log_dir, rank), exit_file(log_dir, rank), progress])


def keep_log(asked: dict[str, Any], rank: int) -> None:
    """Put the log of an earlier start aside."""
    log = log_file(asked["log_dir"], rank)
    if os.path.exists(log):
        os.replace(log, log + ".1")


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
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def record_rank(asked: dict[str, Any], rank: int, local_rank: int, ready: int | None) -> int:
    """Start a rank with its log as output, record its process, wait, record its end."""
    detach_output(log_file(asked["log_dir"], rank), os.O_TRUNC)
    pid = os.fork()
    if pid == 0:
        become_rank(asked, rank, local_rank, own_session=ready is not None)
    write_json(process_file(asked["log_dir"], rank), process_record(asked, rank, pid))
    if ready is not None:
        os.close(ready)
    return record_end(asked, rank, os.waitpid(pid, 0)[1])


def become_rank(asked: dict[str, Any], rank: int, local_rank: int, *, own_session: bool) -> None:
    """In the grandchild: be the training process; a scheduler's step keeps its own session."""
    try:
        if own_session:
            os.setsid()
        for number in (signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        environment = {**job_environment(asked), **rank_environment(asked, rank, local_rank)}
        os.chdir(asked["workdir"])
        os.execvpe(asked["launch"][0], asked["launch"], environment)  # noqa: S606 - no shell wanted
    except OSError as error:
        sys.stderr.write(f"brctl: cannot start rank {rank}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def stop(asked: dict[str, Any]) -> dict[str, Any]:
    """End every process of the job on this node but the parked: SIGTERM, the grace, SIGKILL."""
    with locked(asked):
        signal_all(job_processes(asked), signal.SIGTERM)
        if wait_until_gone(asked, asked["grace_s"]):
            return {"stopped": list(asked["ranks"]), "killed": [], "stuck": []}
        late = [rank for rank in asked["ranks"] if rank_record(asked, rank)]
        signal_all(job_processes(asked), signal.SIGKILL)
        wait_until_gone(asked, GRACE_AFTER_KILL_S)
        stuck = [rank for rank in late if rank_record(asked, rank)]
    return {
        "stopped": [rank for rank in asked["ranks"] if rank not in late],
        "killed": [rank for rank in late if rank not in stuck],
        "stuck": stuck,
    }


def job_processes(asked: dict[str, Any]) -> list[int]:
    """Ranks and what they started; a process that waits for the next start is none of them."""
    parked = parked_pids(asked)
    return [pid for pid in processes_of(asked) if pid not in parked]


def wait_until_gone(asked: dict[str, Any], seconds: float) -> bool:
    """Whether every process of the job left this node in time."""
    deadline = time.monotonic() + seconds
    while job_processes(asked):
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
    program = asked["program"] + f"\nrun({asking!r})\n"
    command = [
        "srun",
        f"--ntasks={asked['tasks']}",
        f"--ntasks-per-node={asked['ranks_per_node']}",
        "--kill-on-bad-exit=0",
        "--input=all",
    ]
    # Since 22.05 srun does not take this over from sbatch by itself.
    if "SLURM_CPUS_PER_TASK" in os.environ:
        command.append("--cpus-per-task=" + os.environ["SLURM_CPUS_PER_TASK"])
    command += [asked["python"], "-I", "-"]
    done = subprocess.run(command, input=program.encode(), check=False)
    return {"exit_status": done.returncode}


def hold(asked: dict[str, Any]) -> dict[str, Any]:
    """As one task of a Slurm step: be the rank's supervisor until the rank ends.

    Its output is the rank's log by then, so it says nothing and ends as the rank did.
    """
    request = asked["requests"][os.environ["SLURMD_NODENAME"]]
    local_rank = int(os.environ["SLURM_LOCALID"])
    rank = request["ranks"][local_rank]
    make_folders(request)
    keep_log(request, rank)
    forget(request, rank)
    # The scheduler signals the whole step; the rank obeys, its supervisor stays to write it down.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1 if record_rank(request, rank, local_rank, None) else 0)


WORK = {
    "start": start,
    "stop": stop,
    "status": status,
    "batch": batch,
    "hold": hold,
    "park": park,
    "parked": look,
    "unpark": unpark,
    "examine": examine,
}


def main(text: str) -> int:
    """Do what one JSON object asks and print one JSON object."""
    asked = json.loads(text)
    try:
        answer = WORK[asked["do"]](asked)
    except OSError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
    return 1 if "error" in answer else 0
