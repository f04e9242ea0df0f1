"""RUNS ON THE NODE. Runs this node's ranks of a reduced job once and says how each ended.

Reads one request, starts the ranks as one process group, keeps the last lines of each rank's
output, kills what is left at the deadline. Changes nothing but what the job's command does.
"""

import collections
import json
import os
import signal
import subprocess
import sys
import threading
import time

LINES = 20
LINE_LIMIT = 4096


def main(request):
    """Start, wait, report: one object with `ranks`."""
    started = [start(request, local) for local in range(int(request["ranks_per_node"]))]
    until = time.monotonic() + float(request["deadline_s"])
    for process, _, _ in started:
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            break
    print(json.dumps({"ranks": [finish(*each) for each in started]}))


def start(request, local):
    """One rank in its own session, with a thread that keeps the end of what it says."""
    rank = int(request["node_rank"]) * int(request["ranks_per_node"]) + local
    environment = dict(os.environ)
    environment.update(request["environment"])
    environment.update(
        RANK=str(rank),
        LOCAL_RANK=str(local),
        WORLD_SIZE=str(request["world_size"]),
        MASTER_ADDR=request["master"],
        MASTER_PORT=str(request["port"]),
        BRCTL_REPLAY="1",
    )
    process = subprocess.Popen(
        request["command"],
        cwd=request["workdir"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    kept = collections.deque(maxlen=LINES)
    reader = threading.Thread(target=keep, args=(process.stdout, kept), daemon=True)
    reader.start()
    return process, kept, reader


def keep(stream, kept):
    for line in iter(lambda: stream.readline(LINE_LIMIT), b""):
        kept.append(line.decode("utf-8", "replace").rstrip("\n"))


def finish(process, kept, reader):
    """Exit status (null when it was still running) and the last lines."""
    status = process.poll()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        status = process.poll()
    process.wait()
    reader.join(2.0)
    return {"exit_status": status, "lines": list(kept)}


if __name__ == "__main__":
    main(globals().get("ORDER") or json.loads(sys.stdin.read()))
