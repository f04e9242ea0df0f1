"""RUNS ON THE NODE. Parks processes that wait to become ranks, finds them, ends them.

One process per local rank, started with the job's own interpreter, environment and directory, in a
session of its own under a small supervisor: it outlives the SSH session, and how it ended is
written down. Its files lie in the job's log directory and are private to the user. A file that
records a parked process is gone the moment the process is a rank. Python 3.8, standard library.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import signal
import time
import traceback
from typing import Any

from checks._ranks.code_release import release_of, whatever_release
from checks._ranks.environment import job_environment, rank_environment, split_launch
from checks._ranks.processes import (
    PARKED,
    detach_output,
    environment_of,
    is_recorded,
    locked,
    marks,
    process_file,
    read_json,
    record_end,
    remove,
    signal_all,
    start_ticks,
    write_json,
)

END_S = 3.0
POLL_S = 0.01

_PROGRAM, _TOLD, _FREE = 3, 4, 10
# What the parked process runs lies in memory behind a descriptor, not in a file or on its command
# line; its names stay out of the job's `__main__`.
STUB = 'exec(__import__("os").fdopen(3).read(),{"__name__":"brctl.parked"})'


def fingerprint(request: dict[str, Any]) -> str:
    """What a parked process was prepared for; a job that says anything else starts cold.

    Not the release of the job's code: of that the process judges itself, it knows what it holds.
    """
    keys = ("launch", "imports", "progress_dir", "checkpoint_dir")
    parts = [request[key] for key in keys] + whatever_release(request)
    text = json.dumps(parts, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def parked_files(request: dict[str, Any], local_rank: int) -> dict[str, str]:
    """The files of one parked process."""
    if os.path.basename(request["node"]) != request["node"]:
        raise OSError(f"{request['node']!r} cannot be part of a file's name")
    base = os.path.join(request["log_dir"], f"parked-{request['node']}-{local_rank}")
    parts = ("record", "starting", "order", "pipe", "end", "log")
    return {part: f"{base}.{part}" for part in parts}


def parked_record(request: dict[str, Any], files: dict[str, str]) -> dict[str, Any] | None:
    """The record of a process that is parked now."""
    record = read_json(files["record"])
    if record is None:
        return None
    token = f"{PARKED}={record.get('token')}".encode()
    return record if is_recorded(record, marks(request) | {token}) else None


def parked_pids(request: dict[str, Any]) -> set[int]:
    """Processes of the job on this node that are no ranks, ready to become ones or not yet."""
    prefix, found = f"parked-{request['node']}-", set()
    for name in os.listdir(request["log_dir"]) if os.path.isdir(request["log_dir"]) else ():
        number = name[len(prefix) :].partition(".")[0]
        if name.startswith(prefix) and number.isdigit():
            found |= {r["pid"] for r in living(request, parked_files(request, int(number)))}
    return found


def living(request: dict[str, Any], files: dict[str, str]) -> list[dict[str, Any]]:
    """The records of one parked process that are true, whether it is ready or still importing."""
    found = []
    for path in (files["record"], files["starting"]):
        record = read_json(path)
        token = f"{PARKED}={(record or {}).get('token')}".encode()
        if record and is_recorded(record, marks(request) | {token}):
            found.append(record)
    return found


def park(request: dict[str, Any]) -> dict[str, Any]:
    """Have one process parked for every local rank; those that are fit stay and live longer."""
    launch = split_launch(request["launch"])
    if "why" in launch:
        return {"error": launch["why"]}
    request = {**request, **launch, "fingerprint": fingerprint(request)}
    for folder in (request["log_dir"], request["progress_dir"]):
        os.makedirs(folder, exist_ok=True)
    with locked(request):
        fresh = [
            n for n in range(request["local_ranks"]) if not renew(request, parked_files(request, n))
        ]
        for local_rank in fresh:
            unpark_one(request, parked_files(request, local_rank))
            start_parked(request, local_rank, parked_files(request, local_rank))
    # Not under the lock: a start that comes now need not wait for imports.
    deadline = time.monotonic() + request["prepare_s"]
    while any(not row["alive"] and not row["why"] for row in list_parked(request)["processes"]):
        if time.monotonic() > deadline:
            give_up(request, fresh)
            break
        time.sleep(POLL_S)
    return {**list_parked(request), "kept": request["local_ranks"] - len(fresh)}


def give_up(request: dict[str, Any], fresh: list[int]) -> None:
    """End what is not ready in time."""
    with locked(request):
        for files in [parked_files(request, local_rank) for local_rank in fresh]:
            if read_json(files["record"]) is None:
                unpark_one(request, files)
                why = f"it was not ready within {request['prepare_s']:g} s"
                write_json(files["end"], {"why": why})


def list_parked(request: dict[str, Any]) -> dict[str, Any]:
    """Every local rank's parked process, or what became of it."""
    rows = []
    for local_rank in range(request["local_ranks"]):
        files = parked_files(request, local_rank)
        record = parked_record(request, files)
        row: dict[str, Any] = {"local_rank": local_rank, "alive": record is not None, "why": ""}
        if record is None:
            row["why"] = (read_json(files["end"]) or {}).get("why", "")
        else:
            keys = ("python", "torch", "gpu", "files", "seconds", "parked_at")
            row.update({key: record.get(key) for key in keys})
        rows.append(row)
    return {"processes": rows}


def renew(request: dict[str, Any], files: dict[str, str]) -> bool:
    """Whether a parked process still is what a fresh one would be; it looks at its files."""
    record = parked_record(request, files)
    if record is None or record.get("fingerprint") != request["fingerprint"]:
        return False
    number = secrets.token_hex(8)
    order = {"do": "renew", "id": number, "token": record["token"], "lease_s": request["lease_s"]}
    give_order(files, {**order, "release": release_of(request)})
    deadline = time.monotonic() + request["answer_s"]
    while time.monotonic() < deadline:
        now = parked_record(request, files)
        if now is None:
            # Its supervisor writes that it ended; what is parked after that must not find it.
            await_end(record.get("supervisor"))
            return False
        if now.get("renewed") == number:
            return True
        time.sleep(POLL_S)
    return False


def give_order(files: dict[str, str], order: dict[str, Any]) -> None:
    """Leave an order where the parked process looks, and wake it."""
    write_json(files["order"], order)
    with contextlib.suppress(OSError):
        pipe = os.open(files["pipe"], os.O_WRONLY | os.O_NONBLOCK)
        os.write(pipe, b"\n")
        os.close(pipe)


def order_start(request: dict[str, Any], rank: int, local_rank: int) -> dict[str, Any]:
    """Order the parked process to become the rank; what `await_start` needs to see it through."""
    files = parked_files(request, local_rank)
    record = parked_record(request, files)
    start = {"files": files, "rank": rank, "record": record, "why": None}
    if record is None:
        start["why"] = why_not_parked(files)
    elif record.get("fingerprint") != fingerprint(request):
        start["why"] = (
            "it was parked for another launch command, environment, directory or list of modules"
        )
    else:
        give_order(files, start_order(request, rank, local_rank, record))
    return start


def await_start(request: dict[str, Any], start: dict[str, Any], deadline: float) -> str | None:
    """None once the parked process is the rank, "" when none ever was, else why it is not."""
    why: str | None = start["why"]
    if why is None:
        why = await_rank(request, start, deadline)
    if why is not None:
        unpark_one(request, start["files"])
    return why


def why_not_parked(files: dict[str, str]) -> str:
    """Why nothing is parked: "" when nothing ever was."""
    end = read_json(files["end"])
    if end is not None:
        return str(end.get("why", "it ended"))
    gone = "it is gone: it was killed, or the node started anew since"
    return gone if os.path.exists(files["record"]) else ""


def start_order(
    request: dict[str, Any], rank: int, local_rank: int, record: dict[str, Any]
) -> dict[str, Any]:
    """What tells a parked process which rank of which start it is."""
    keys = ("job", "node", "log_dir", "incarnation")
    return {
        **{key: request[key] for key in keys},
        "do": "start",
        "rank": rank,
        "token": record["token"],
        "parked_at": record["parked_at"],
        "environment": rank_environment(request, rank, local_rank),
        "release": release_of(request),
    }


def await_rank(request: dict[str, Any], start: dict[str, Any], deadline: float) -> str | None:
    """None once the process says that it is the rank, else what became of it."""
    record, path = start["record"], process_file(request["log_dir"], start["rank"])
    while True:
        if (read_json(path) or {}).get("pid") == record["pid"]:
            return None
        if start_ticks(record["pid"]) != record["start_ticks"]:
            # Its supervisor writes the end of a rank; a rank started after that must not find it.
            await_end(record.get("supervisor"))
            return why_not_parked(start["files"]) or "it ended while it became the rank"
        if time.monotonic() > deadline:
            return f"it did not answer within {request['answer_s']:g} s"
        time.sleep(POLL_S)


def await_end(pid: Any) -> None:
    """Wait a little until a process is gone."""
    deadline = time.monotonic() + END_S
    while isinstance(pid, int) and start_ticks(pid) is not None and time.monotonic() < deadline:
        time.sleep(POLL_S)


def unpark(request: dict[str, Any]) -> dict[str, Any]:
    """End every parked process of the job on this node."""
    with locked(request):
        ended = [
            n
            for n in range(request["local_ranks"])
            if unpark_one(request, parked_files(request, n))
        ]
    return {"ended": ended}


def unpark_one(request: dict[str, Any], files: dict[str, str]) -> bool:
    """End a parked process, ready or not, and remove what it left but its log."""
    alive = living(request, files)
    for record in alive:
        end_process(record)
    remove([path for part, path in files.items() if part != "log"])
    return bool(alive)


def end_parked_of_other_jobs(request: dict[str, Any]) -> None:
    """End what waits on this node for other jobs: it would keep GPU memory from these ranks."""
    here, ours = f"BRCTL_NODE={request['node']}".encode(), f"BRCTL_JOB={request['job']}".encode()
    mark = f"{PARKED}=".encode()
    for name in os.listdir("/proc"):
        environment = environment_of(int(name)) if name.isdigit() else set()
        token = next((w for w in environment if w.startswith(mark)), b"")[len(mark) :].decode()
        if token and here in environment and ours not in environment:
            record_path = token.partition("@")[2]
            for path in (record_path, record_path[: -len("record")] + "starting"):
                record = read_json(path) or {}
                if record.get("token") == token and record.get("pid") == int(name):
                    end_process(record)


def end_process(record: dict[str, Any]) -> None:
    """End a parked process and wait for its supervisor, which writes down how it ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        signal_all([record["pid"]], number)
        await_end(record["pid"])
    await_end(record.get("supervisor"))


def start_parked(request: dict[str, Any], local_rank: int, files: dict[str, str]) -> None:
    """Fork the supervisor; it never returns."""
    # With the path of its record, so that a start of another job here can tell it from a rank.
    token = f"{secrets.token_hex(16)}@{files['record']}"
    request = {**request, **files, "local_rank": local_rank, "token": token}
    ready_read, ready_write = os.pipe()
    if os.fork() == 0:
        try:
            os.close(ready_read)
            os.setsid()
            detach_output(files["log"], os.O_TRUNC)
            supervise(request, ready_write)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    os.close(ready_write)
    os.read(ready_read, 1)
    os.close(ready_read)


def supervise(request: dict[str, Any], ready: int) -> None:
    """Start the process that parks, hear what becomes of it, write down how it ended."""
    hears, told = os.pipe()
    gate, opened = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(opened)
        # Not before it is recorded: it removes that record itself when it is ready.
        os.read(gate, 1)
        become_parked(request, told)
    os.close(told)
    starting = {"pid": pid, "start_ticks": start_ticks(pid), "supervisor": os.getpid()}
    write_json(request["starting"], {**starting, "token": request["token"]})
    # From here on the place is taken; what an old process's end said before is of no use any more.
    remove([request["end"]])
    os.close(opened)
    os.close(ready)
    with os.fdopen(hears) as stream:
        order = stream.read()
    status = os.waitpid(pid, 0)[1]
    if order:
        record_end(json.loads(order), json.loads(order)["rank"], status)
    if is_replaced(request):
        return
    remove([request["starting"]])
    if not order and (os.path.exists(request["record"]) or not os.path.exists(request["end"])):
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else "an error"
        write_json(request["end"], {"why": f"it ended by {how}; see {request['log']}"})
        remove([request["record"], request["pipe"]])


def is_replaced(request: dict[str, Any]) -> bool:
    """Whether another process was parked in this one's place, which may wait only so long."""
    others = [(read_json(request[part]) or {}).get("token") for part in ("record", "starting")]
    return any(token not in (None, request["token"]) for token in others)


def become_parked(request: dict[str, Any], told: int) -> None:
    """In the grandchild: be the job's interpreter with the parked program."""
    try:
        os.setsid()
        for number in (signal.SIGTERM, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        program = os.memfd_create("brctl-parked")
        settings = {k: v for k, v in request.items() if k not in ("program", "environment")}
        call = f"\nrun({json.dumps({**settings, 'told': _TOLD})!r})\n"
        os.write(program, (request["program"] + call).encode())
        os.lseek(program, 0, os.SEEK_SET)
        move_descriptors({program: _PROGRAM, told: _TOLD})
        os.chdir(request["workdir"])
        environment = {**job_environment(request), PARKED: request["token"]}
        environment["LOCAL_RANK"] = str(request["local_rank"])
        words = [*request["python"], "-c", STUB]
        # Room for the rank's own command line, which replaces this one.
        missing = sum(len(os.fsencode(word)) + 1 for word in request["launch"])
        missing -= sum(len(os.fsencode(word)) + 1 for word in words)
        words += ["brctl-parked".ljust(missing, "-")]
        os.execvpe(words[0], words, environment)  # noqa: S606 - no shell wanted
    except OSError as error:
        write_json(request["end"], {"why": f"it could not start: {error}"})
    finally:
        os._exit(127)


def move_descriptors(targets: dict[int, int]) -> None:
    """Put descriptors where the new program expects them, whatever numbers they have now."""
    high = {fcntl.fcntl(s, fcntl.F_DUPFD_CLOEXEC, _FREE): t for s, t in targets.items()}
    for source, target in high.items():
        os.dup2(source, target)
