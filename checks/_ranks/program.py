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
    await_start,
    end_parked_of_other_jobs,
    list_parked,
    order_start,
    park,
    parked_pids,
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


def start(request: dict[str, Any]) -> dict[str, Any]:
    """Start every rank of this node that does not run yet; a parked process becomes its rank."""
    make_folders(request)
    with locked(request):
        for rank in request["ranks"]:
            record = rank_record(request, rank)
            if record and record.get("incarnation") != request["incarnation"]:
                why = f"rank {rank} of an earlier start still runs as pid {record['pid']}"
                return {"error": why, "started": []}
        end_parked_of_other_jobs(request)
        return start_ranks(request)


def make_folders(request: dict[str, Any]) -> None:
    """Make the directories a rank writes to."""
    for folder in (request["log_dir"], request["progress_dir"], request["checkpoint_dir"]):
        os.makedirs(folder, exist_ok=True)


def start_ranks(request: dict[str, Any]) -> dict[str, Any]:
    """What became of each rank: running already, warm from a parked process, or cold and why."""
    running = {rank: rank_record(request, rank) for rank in request["ranks"]}
    warm = [rank for rank, record in running.items() if record and "parked_at" in record]
    pending_starts = {}
    for local_rank, rank in enumerate(request["ranks"]):
        if running[rank] is None:
            keep_log(request, rank)
            forget(request, rank)
            pending_starts[local_rank] = order_start(request, rank, local_rank)
    deadline, cold = time.monotonic() + request["answer_s"], {}
    for local_rank, pending in pending_starts.items():
        why = await_start(request, pending, deadline)
        if why is None:
            warm.append(pending["rank"])
            continue
        forget(request, pending["rank"])
        launch(request, pending["rank"], local_rank)
        cold.update({str(pending["rank"]): why} if why else {})
    return {"started": list(request["ranks"]), "warm": warm, "cold": cold}


def forget(request: dict[str, Any], rank: int) -> None:
    """Remove the traces of an earlier start, so that nobody takes them for this one's."""
    progress = os.path.join(request["progress_dir"], f"rank-{rank:05d}.json")
    log_dir = request["log_dir"]
    remove([process_file(log_dir, rank), exit_file(log_dir, rank), progress])


def keep_log(request: dict[str, Any], rank: int) -> None:
    """Put the log of an earlier start aside."""
    log = log_file(request["log_dir"], rank)
    if os.path.exists(log):
        os.replace(log, log + ".1")


def launch(request: dict[str, Any], rank: int, local_rank: int) -> None:
    """Start one rank and return once its process is recorded."""
    ready_read, ready_write = os.pipe()
    if os.fork() == 0:
        os.close(ready_read)
        supervise(request, rank, local_rank, ready_write)
    os.close(ready_write)
    os.read(ready_read, 1)
    os.close(ready_read)


def supervise(request: dict[str, Any], rank: int, local_rank: int, ready: int) -> None:
    """In the child: leave the SSH session, start the rank, wait for it, write how it ended."""
    try:
        os.setsid()
        record_rank(request, rank, local_rank, ready)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def record_rank(request: dict[str, Any], rank: int, local_rank: int, ready: int | None) -> int:
    """Start a rank with its log as output, record its process, wait, record its end."""
    detach_output(log_file(request["log_dir"], rank), os.O_TRUNC)
    pid = os.fork()
    if pid == 0:
        become_rank(request, rank, local_rank, own_session=ready is not None)
    write_json(process_file(request["log_dir"], rank), process_record(request, rank, pid))
    if ready is not None:
        os.close(ready)
    return record_end(request, rank, os.waitpid(pid, 0)[1])


def become_rank(request: dict[str, Any], rank: int, local_rank: int, *, own_session: bool) -> None:
    """In the grandchild: be the training process; a scheduler's step keeps its own session."""
    try:
        if own_session:
            os.setsid()
        for number in (signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        environment = {**job_environment(request), **rank_environment(request, rank, local_rank)}
        os.chdir(request["workdir"])
        os.execvpe(request["launch"][0], request["launch"], environment)  # noqa: S606 - no shell wanted
    except OSError as error:
        sys.stderr.write(f"brctl: cannot start rank {rank}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(127)


def stop(request: dict[str, Any]) -> dict[str, Any]:
    """End every process of the job on this node but the parked: SIGTERM, the grace, SIGKILL."""
    with locked(request):
        signal_all(job_processes(request), signal.SIGTERM)
        if wait_until_gone(request, request["grace_s"]):
            return {"stopped": list(request["ranks"]), "killed": [], "stuck": []}
        late = [rank for rank in request["ranks"] if rank_record(request, rank)]
        signal_all(job_processes(request), signal.SIGKILL)
        wait_until_gone(request, GRACE_AFTER_KILL_S)
        stuck = [rank for rank in late if rank_record(request, rank)]
    return {
        "stopped": [rank for rank in request["ranks"] if rank not in late],
        "killed": [rank for rank in late if rank not in stuck],
        "stuck": stuck,
    }


def job_processes(request: dict[str, Any]) -> list[int]:
    """Ranks and what they started; a process that waits for the next start is none of them."""
    parked = parked_pids(request)
    return [pid for pid in processes_of(request) if pid not in parked]


def wait_until_gone(request: dict[str, Any], seconds: float) -> bool:
    """Whether every process of the job left this node in time."""
    deadline = time.monotonic() + seconds
    while job_processes(request):
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.05)
    return True


def status(request: dict[str, Any]) -> dict[str, Any]:
    """Which ranks run, of which start, and how the others ended."""
    ranks = []
    for rank in request["ranks"]:
        record = rank_record(request, rank)
        ended = read_json(exit_file(request["log_dir"], rank)) or {}
        ranks.append(
            {
                "rank": rank,
                "alive": record is not None,
                "incarnation": record.get("incarnation") if record else None,
                "exit_status": ended.get("exit_status"),
            }
        )
    return {"ranks": ranks}


def batch(request: dict[str, Any]) -> dict[str, Any]:
    """As Slurm's batch program: give every task this program and what it is to start."""
    import subprocess

    hold_request = json.dumps({"do": "hold", "requests": request["requests"]})
    program = request["program"] + f"\nrun({hold_request!r})\n"
    command = [
        "srun",
        f"--ntasks={request['tasks']}",
        f"--ntasks-per-node={request['ranks_per_node']}",
        "--kill-on-bad-exit=0",
        "--input=all",
    ]
    # Since 22.05 srun does not take this over from sbatch by itself.
    if "SLURM_CPUS_PER_TASK" in os.environ:
        command.append("--cpus-per-task=" + os.environ["SLURM_CPUS_PER_TASK"])
    command += [request["python"], "-I", "-"]
    done = subprocess.run(command, input=program.encode(), check=False)
    return {"exit_status": done.returncode}


def hold(request: dict[str, Any]) -> dict[str, Any]:
    """As one task of a Slurm step: be the rank's supervisor until the rank ends.

    Its output is the rank's log by then, so it says nothing and ends as the rank did.
    """
    node_request = request["requests"][os.environ["SLURMD_NODENAME"]]
    local_rank = int(os.environ["SLURM_LOCALID"])
    rank = node_request["ranks"][local_rank]
    make_folders(node_request)
    keep_log(node_request, rank)
    forget(node_request, rank)
    # The scheduler signals the whole step; the rank obeys, its supervisor stays to write it down.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit(1 if record_rank(node_request, rank, local_rank, None) else 0)


WORK = {
    "start": start,
    "stop": stop,
    "status": status,
    "batch": batch,
    "hold": hold,
    "park": park,
    "parked": list_parked,
    "unpark": unpark,
    "examine": examine,
}


def main(text: str) -> int:
    """Do what one JSON object asks and print one JSON object."""
    request = json.loads(text)
    try:
        answer = WORK[request["do"]](request)
    except OSError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))
    return 1 if "error" in answer else 0
