"""RUNS ON THE NODE, inside a parked process: import, open the GPU, wait, become the rank.

It waits at a pipe and costs no CPU time. It leaves by itself when its record is gone, its lease
runs out, or a file it has imported changed: then it no longer is what a fresh start would be.
Python 3.8, standard library only; torch is imported only because the job does.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import runpy
import select
import sys
import time
from typing import Any, NoReturn

from checks._ranks.code_release import search_folder, why_not_release
from checks._ranks.processes import (
    PARKED,
    detach_output,
    log_file,
    process_file,
    process_record,
    read_json,
    remove,
    start_ticks,
    write_json,
)

WAKE_S = 5.0
"""How often it looks whether the pool still wants it; an order wakes it at once."""

# Imported where the interpreter has it, whatever the job lists besides: the dear part of a start.
ALWAYS = ("torch", "torch.distributed")


def main(request: dict[str, Any]) -> None:
    """Park, wait, and run the job's program as the rank that the order names."""
    began_ns = time.time_ns()
    os.set_inheritable(request["told"], False)
    try:
        prepare(request)
        gpu = open_gpu(request)
        files = imported_files()
        refuse_fresh(files, began_ns)
        os.mkfifo(request["pipe"], 0o600)
    except Exception as error:
        leave(request, f"it could not prepare: {type(error).__name__}: {error}", 1)
    record = describe(request, gpu, len(files), (time.time_ns() - began_ns) / 1e9)
    write_json(request["record"], record)
    remove([request["starting"]])
    become(request, wait(request, record, files))
    if request["kind"] == "module":
        runpy.run_module(request["target"], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(request["target"], run_name="__main__")


def prepare(request: dict[str, Any]) -> None:
    """Import what the rank will; a million new objects are no garbage to look for."""
    gc.disable()
    look_first_in(search_folder(request, os.getcwd()))
    for name in ALWAYS:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:
            importlib.import_module(name)
    for name in request["imports"]:
        importlib.import_module(name)


def look_first_in(folder: str | None) -> None:
    """Search for modules as the job's own interpreter would."""
    if folder is not None:
        sys.path[0] = folder
    importlib.invalidate_caches()


def open_gpu(request: dict[str, Any]) -> str | None:
    """Create the CUDA context of the local rank's GPU; the GPU's name, None without one."""
    torch = sys.modules.get("torch")
    if not request["gpu"] or torch is None or not torch.cuda.is_available():
        return None
    device = request["local_rank"] % torch.cuda.device_count()
    torch.cuda.set_device(device)
    torch.zeros(1, device="cuda").add_(1)
    torch.cuda.synchronize()
    return str(torch.cuda.get_device_name(device))


def imported_files() -> dict[str, tuple[int, int]]:
    """Size and time of every file that was imported, and of the interpreter."""
    paths = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    found = {path: stamp(path) for path in (*paths, sys.executable) if isinstance(path, str)}
    return {path: value for path, value in found.items() if value is not None}


def stamp(path: str) -> tuple[int, int] | None:
    """What changes when a file does; None when there is no such file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns


def refuse_fresh(files: dict[str, tuple[int, int]], began_ns: int) -> None:
    """What was written while it was imported may be half old, half new."""
    for path, (_, written_ns) in files.items():
        if written_ns >= began_ns:
            raise RuntimeError(f"{path} was written while it was imported; park again")


def changed(files: dict[str, tuple[int, int]]) -> str | None:
    """The first imported file that is not what it was."""
    return next((path for path, value in files.items() if stamp(path) != value), None)


def describe(
    request: dict[str, Any], gpu: str | None, files: int, seconds: float
) -> dict[str, Any]:
    """The record of a process that is ready."""
    torch = sys.modules.get("torch")
    return {
        "pid": os.getpid(),
        "start_ticks": start_ticks(os.getpid()),
        "supervisor": os.getppid(),
        "token": request["token"],
        "fingerprint": request["fingerprint"],
        "python": sys.version.split()[0],
        "torch": str(torch.__version__) if torch else None,
        "gpu": gpu,
        "files": files,
        "seconds": round(seconds, 2),
        "parked_at": time.time(),
        "renewed": "",
    }


def wait(
    request: dict[str, Any], record: dict[str, Any], files: dict[str, tuple[int, int]]
) -> dict[str, Any]:
    """The order to start; it does not return otherwise."""
    pipe = os.open(request["pipe"], os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    until = time.monotonic() + request["lease_s"]
    while True:
        poll.poll(1000 * max(0.0, min(WAKE_S, until - time.monotonic())))
        with contextlib.suppress(BlockingIOError):
            os.read(pipe, 4096)
        if (read_json(request["record"]) or {}).get("token") != request["token"]:
            leave(request, "the pool dropped it", 0)
        order = take_order(request)
        if order is not None:
            refuse_changed(request, files, order["release"])
            if order["do"] == "start":
                os.close(pipe)
                return order
            until = time.monotonic() + order["lease_s"]
            write_json(request["record"], {**record, "renewed": order["id"]})
        if time.monotonic() > until:
            leave(request, "its lease ran out", 0)


def take_order(request: dict[str, Any]) -> dict[str, Any] | None:
    """The order that was left, once; anybody else's is none."""
    try:
        mine = os.lstat(request["order"]).st_uid == os.geteuid()
    except OSError:
        return None
    order = read_json(request["order"]) if mine else None
    remove([request["order"]])
    return order if order and order.get("token") == request["token"] else None


def refuse_changed(
    request: dict[str, Any], files: dict[str, tuple[int, int]], release: dict[str, Any]
) -> None:
    """Leave when a fresh start would import something else."""
    path = changed(files)
    if path is not None:
        leave(request, f"{path} changed since it was imported", 0)
    why = why_not_release(request, release)
    if why is not None:
        leave(request, why, 0)


def leave(request: dict[str, Any], why: str, status: int) -> NoReturn:
    """End, and say why where the next start looks."""
    write_json(request["end"], {"token": request["token"], "why": why})
    remove([request["record"], request["pipe"]])
    # Not sys.exit: nothing of the job ran yet that would have to be cleaned up.
    sys.stdout.flush()
    os._exit(status)


def become(request: dict[str, Any], order: dict[str, Any]) -> None:
    """Take the rank's environment, log and record; from here on this is the rank."""
    rank = order["rank"]
    os.environ.pop(PARKED, None)
    enter_release(request, order["release"])
    os.environ.update(order["environment"])
    sys.stdout.flush()
    sys.stderr.flush()
    detach_output(log_file(request["log_dir"], rank), os.O_TRUNC)
    # The supervisor first: whatever happens next, the end of this process is the end of the rank.
    os.write(request["told"], json.dumps(order).encode())
    os.close(request["told"])
    record = {**process_record(order, rank, os.getpid()), "parked_at": order["parked_at"]}
    write_json(process_file(request["log_dir"], rank), record)
    remove([request["record"], request["pipe"]])
    with contextlib.suppress(OSError, ImportError, ValueError, IndexError):
        show_command_line(request["launch"])
    sys.argv = [request["target"], *request["arguments"]]
    gc.freeze()
    gc.enable()


def enter_release(request: dict[str, Any], release: dict[str, Any]) -> None:
    """Stand where a fresh start of the release would, and import from there."""
    os.environ.update(release["environment"])
    os.chdir(release["workdir"])
    look_first_in(search_folder(request, release["workdir"]))


def show_command_line(words: list[str]) -> None:
    """Let `ps` and everything that looks for the job's program find it under its own words."""
    import ctypes

    with open("/proc/self/stat") as stream:
        fields = stream.read().rpartition(")")[2].split()
    first, last = int(fields[45]), int(fields[46])
    text = b"\0".join(os.fsencode(word) for word in words)[: last - first - 1]
    ctypes.memmove(first, text.ljust(last - first, b"\0"), last - first)
