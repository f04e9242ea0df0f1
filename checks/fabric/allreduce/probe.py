"""RUNS ON THE NODE. Sums a known vector over processes of this node and checks every bit.

NCCL where there are several GPUs, gloo otherwise. Needs torch; loads GPUs and links, and
changes nothing else.
"""

import datetime
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time


# Every probe is one file, so this block is the same in all of them; a test compares.
class Readings(object):
    """Values read so far, and why others are missing."""

    def __init__(self):
        self.rows = []
        self.notes = []

    def add(self, name, subject, value):
        self.rows.append({"name": name, "subject": subject, "value": value})

    def note(self, text):
        self.notes.append(str(text)[:400])

    def read(self, name, subject, call, *arguments):
        """Add what the call returns and return it; a failure becomes a note, never a number."""
        try:
            value = call(*arguments)
        except Exception as exc:
            unsupported = getattr(exc, "value", None) in (3, 13)  # not supported by part, by driver
            shape = "not supported: %s %s" if unsupported else "%s %s: %s"
            self.note(shape % ((name, subject) if unsupported else (name, subject, exc)))
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        self.add(name, subject, value)
        return value


class OutOfTime(BaseException):
    """The probe's own deadline; no `except Exception` may catch it as a failed reading."""


def out_of_time(signum, frame):
    raise OutOfTime()


def main(measure):
    """Read parameters, measure within the deadline, print what was read so far whatever happens."""
    parameters = json.loads(sys.stdin.read() or "{}")
    readings = Readings()
    status = 0
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, float(parameters.get("deadline_s", 10)) * 0.9))
    try:
        status = measure(readings, parameters) or 0
    except OutOfTime:
        readings.note("deadline_s reached")
        status = 1
    except Exception as exc:
        readings.note("%s: %s" % (type(exc).__name__, exc))
        status = 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps({"measurements": readings.rows, "notes": readings.notes}))
    return status


def worker(rank, count, parameters, results):
    """One member of the group; sends (rank, wrong elements, seconds) or (rank, error)."""
    try:
        wrong, spent = reduce_once(rank, count, parameters)
        results.put((rank, wrong, spent))
    except Exception as exc:
        results.put((rank, "%s: %s" % (type(exc).__name__, exc), 0.0))


def reduce_once(rank, count, parameters):
    import torch
    import torch.distributed as dist

    gc.freeze()  # what stays is no garbage to look for at the end
    torch.set_num_threads(1)
    cuda = torch.cuda.is_available() and parameters.get("backend") != "gloo"
    device = torch.device("cuda", rank) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    limit = datetime.timedelta(seconds=float(parameters.get("collective_timeout_s", 20)))
    dist.init_process_group(
        "nccl" if cuda else "gloo", init_method=parameters["rendezvous"], rank=rank,
        world_size=count, timeout=limit,
    )  # fmt: skip
    size = int(parameters.get("elements", 1 << 20))
    # Whole numbers: the sum is exact whatever the order in which the ring adds.
    mine = torch.arange(size, device=device, dtype=torch.int64).remainder(1024).float() + rank
    expected = mine.sub(rank).mul(count).add(count * (count - 1) // 2)
    wrong, spent = 0, []
    for _ in range(int(parameters.get("rounds", 5))):
        value = mine.clone()
        dist.barrier()
        start = time.monotonic()
        dist.all_reduce(value)
        if cuda:
            torch.cuda.synchronize(device)
        spent.append(time.monotonic() - start)
        wrong += int((value != expected).sum())
    dist.destroy_process_group()
    return wrong, min(spent)


def measure(readings, parameters):
    try:
        import torch
        import torch.multiprocessing as multiprocessing
    except Exception as exc:
        readings.note("torch: %s" % exc)
        return 1
    gpus = torch.cuda.device_count() if parameters.get("backend") != "gloo" else 0
    count = gpus if gpus > 1 else int(parameters.get("processes", 2))
    if gpus < 2:
        parameters["backend"] = "gloo"
    folder = tempfile.mkdtemp(prefix="brctl-allreduce-")
    parameters["rendezvous"] = "file://" + os.path.join(folder, "meet")
    try:
        return collect(readings, parameters, multiprocessing, count)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def gather(readings, parameters, results, count):
    """(status, wrong elements of all, seconds of the slowest) from every member."""
    status, wrong, slowest = 0, 0, 0.0
    limit_s = float(parameters.get("deadline_s", 60)) * 0.8
    for _ in range(count):
        rank, found, spent = results.get(timeout=limit_s)
        if isinstance(found, str):
            readings.note("member %d: %s" % (rank, found))
            status = 1
            continue
        wrong += found
        slowest = max(slowest, spent)
    return status, wrong, slowest


def end(members):
    """No member outlives the probe."""
    for member in members:
        member.join(2)
        if member.is_alive():
            member.kill()
            member.join(2)


def collect(readings, parameters, multiprocessing, count):
    context = multiprocessing.get_context(
        "fork" if parameters.get("backend") == "gloo" else "spawn"
    )
    results = context.Queue()
    members = [
        context.Process(target=worker, args=(rank, count, parameters, results), daemon=True)
        for rank in range(count)
    ]
    for member in members:
        member.start()
    try:
        status, wrong, slowest = gather(readings, parameters, results, count)
    finally:
        end(members)
    if status == 0:
        size = int(parameters.get("elements", 1 << 20)) * 4
        readings.add("fabric.allreduce.wrong_elements", "", wrong)
        readings.add("fabric.allreduce.members", "", count)
        # Bus bandwidth as nccl-tests defines it: algorithm bandwidth times 2 (n - 1) / n.
        rate = size / slowest * 2.0 * (count - 1) / count / 1e9 if slowest else 0.0
        readings.add("fabric.allreduce.bus_gb_per_s", "", rate)
        readings.add("fabric.allreduce.transport", "", parameters.get("backend") or "nccl")
    return status


if __name__ == "__main__":
    sys.exit(main(measure))
