"""RUNS ON THE NODE. Asks the worker servers of a job's ranks what they do; changes nothing.

One JSON object on standard input: `ranks` (`rank`, `pid`, `socket`, `pipe`, `dump`) and limits. On
standard output one line of JSON for each handler of each rank, its answer in base64. A rank whose
recorder is asked through a pipe writes its dump itself; how that went is one line, too. Python 3.8,
standard library only.
"""

import base64
import json
import os
import socket
import stat
import sys
import time

from checks._live_queries.exchange import Deadline, is_timeout, receive

PING, TRACEBACK = "ping", "dump_traceback"
RECORDERS = ("dump_nccl_trace_json", "fr_trace_json")
"""The first that is offered: a CUDA build has both, and NCCL's is in the first."""
HEAD_LIMIT = 16384
POLL_S = 0.1


def ask_rank(rank, request):
    """Lines for one rank: its recorder before its stacks, which need the interpreter."""
    path, why = own_file(rank, rank["socket"], stat.S_ISSOCK)
    if why:
        yield told(rank, PING, why)
        return
    outcome, body = call(path, "GET", "", request["ping_s"], HEAD_LIMIT)
    offered = names_in(body)
    if outcome == "ok":
        outcome, _ = call(path, "POST", PING, request["ping_s"], HEAD_LIMIT)
    yield told(rank, PING, outcome)
    if outcome != "ok":
        return
    for recorder in [name for name in RECORDERS if name in offered][:1]:
        yield told(rank, recorder, *answer_of(path, recorder, request["answer_s"], request))
    if TRACEBACK in offered:
        yield told(rank, TRACEBACK, *answer_of(path, TRACEBACK, request["traceback_s"], request))


def answer_of(path, handler, seconds, request):
    return call(path, "POST", handler, seconds, request["limit_bytes"])


def names_in(body):
    try:
        names = json.loads(body.decode("utf-8", "replace"))
    except ValueError:
        return ()
    return [n for n in names if isinstance(n, str)] if isinstance(names, list) else ()


def own_file(rank, path, is_kind):
    """(the path as we reach it, why not): it must be of the kind, and of the rank's own user."""
    if not path or not os.path.isabs(path):
        return "", "no path"
    inside = "/proc/%d/root%s" % (rank["pid"], path)
    try:
        found, owner = os.stat(inside), os.stat("/proc/%d" % rank["pid"])
    except OSError as error:
        return "", "gone" if error.errno == 2 else str(error.strerror)
    if not is_kind(found.st_mode):
        return "", "another kind of file"
    return (inside, "") if found.st_uid == owner.st_uid else ("", "another user's file")


def call(path, method, handler, seconds, limit):
    """(`ok`, or how it went; the body)."""
    deadline = Deadline(seconds)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        connection.settimeout(seconds)
        connection.connect("/proc/self/fd/%d/%s" % (folder, os.path.basename(path)))
        connection.sendall(
            ("%s /handler/%s HTTP/1.1\r\nHost: localhost\r\n" % (method, handler)).encode()
            + b"Content-Length: 0\r\nConnection: close\r\n\r\n"
        )
        answer, end = receive(connection, deadline, limit + HEAD_LIMIT)
    except OSError as error:
        return ("late" if is_timeout(error) else "refused"), b""
    finally:
        os.close(folder)
        connection.close()
    if end != "closed":
        return ("late" if end == "late" else "over-limit"), b""
    return content_of(answer, limit)


def content_of(answer, limit):
    head, blank, body = answer.partition(b"\r\n\r\n")
    words = head.split(b"\r\n")[0].split()
    if not blank or len(words) < 2 or not words[0].startswith(b"HTTP/1."):
        return "not-http", b""
    if words[1] != b"200":
        return "status %s" % words[1][:3].decode("ascii", "replace"), body[:200]
    lengths = [
        line.split(b":")[1].strip()
        for line in head.split(b"\r\n")[1:]
        if line.lower().startswith(b"content-length:")
    ]
    whole = len(body) <= limit and (not lengths or lengths[0] == b"%d" % len(body))
    return ("ok", body) if whole else ("broken-off", b"")


def ask_pipe(rank, seconds):
    """Have NCCL's recorder write its file: one byte into a pipe that only its thread reads."""
    path, why = own_file(rank, "%s%d.pipe" % (rank["pipe"], rank["rank"]), stat.S_ISFIFO)
    if why:
        return why
    before = written_at(rank)
    try:
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError:
        return "nobody reads the pipe"
    try:
        os.write(pipe, b"1")
    except OSError:
        return "nobody reads the pipe"
    finally:
        os.close(pipe)
    deadline = Deadline(seconds)
    while written_at(rank) == before:
        if deadline.left_s() <= 0:
            return "late"
        time.sleep(POLL_S)
    return "ok"


def written_at(rank):
    try:
        found = os.stat("/proc/%d/root%s%d" % (rank["pid"], rank["dump"], rank["rank"]))
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def told(rank, handler, outcome, body=b""):
    return {
        "rank": rank["rank"],
        "handler": handler,
        "outcome": outcome,
        "body": base64.b64encode(body).decode(),
    }


def main(request):
    for rank in request["ranks"]:
        if rank["pipe"]:
            line = told(rank, "pipe", ask_pipe(rank, request["answer_s"]))
            sys.stdout.write(json.dumps(line) + "\n")
        for line in ask_rank(rank, request) if rank["socket"] else ():
            sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(json.loads(sys.stdin.read()))
