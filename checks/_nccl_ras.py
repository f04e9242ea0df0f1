"""RUNS ON THE NODE. Asks the RAS service of a job's NCCL for its state; reads, never commands.

One JSON object on standard input: `pid` (whose network), `addresses`, `port`, `format`, and limits.
On standard output one line of JSON that says how it went, then what was answered, as it came. The
question is always `STATUS`: `VERBOSE STATUS` has corrupted memory, `CONTROL` changes a job.

All processes of a node share the port and the kernel picks one: a stopped one takes the connection
and says nothing, so a silent one is asked again. Python 3.8, standard library only.
"""

import json
import socket
import sys
import time

from checks._live_queries.exchange import Deadline, enter_network_of, is_timeout, receive

HELLO = b"CLIENT PROTOCOL 2\n"
LINE_LIMIT = 4096


class UnusableError(Exception):
    """This connection leads nowhere; `outcome` says how."""

    def __init__(self, outcome, said=b""):
        Exception.__init__(self, outcome)
        self.outcome = outcome
        self.said = said


def ask(request):
    """(how it went, the answer)."""
    started = time.monotonic()
    told = {"outcome": "silent", "tries": 0, "address": "", "said": ""}
    answer = b""
    for number in range(1, request["tries"] + 1):
        told["tries"] = number
        try:
            connection, told["address"] = reach(request)
        except UnusableError as error:
            told["outcome"] = error.outcome
            if error.outcome == "refused":
                break
            continue
        try:
            told["outcome"], answer = converse(connection, request)
            break
        except UnusableError as error:
            told["outcome"], told["said"] = (
                error.outcome,
                error.said[:200].decode("utf-8", "replace"),
            )
            if error.outcome not in ("silent", "closed"):
                break
        finally:
            connection.close()
    told["seconds"] = round(time.monotonic() - started, 3)
    told["length"] = len(answer)
    return told, answer


def reach(request):
    """A connection to the first address that takes one, and that address."""
    outcome = "refused"
    for address in request["addresses"]:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        connection.settimeout(request["try_s"])
        try:
            connection.connect((address, request["port"]))
        except OSError as error:
            connection.close()
            outcome = "silent" if is_timeout(error) else outcome
        else:
            return connection, address
    raise UnusableError(outcome)


def converse(connection, request):
    """The real client's order: greeting, time limit, format where it is not text, the question."""
    hello = line_after(connection, HELLO, request["try_s"])
    if not hello.upper().startswith(b"SERVER PROTOCOL "):
        raise UnusableError("not-ras", hello)
    said = line_after(connection, b"TIMEOUT %d\n" % request["timeout_s"], request["try_s"])
    if said.strip().upper() != b"OK":
        raise UnusableError("refused-timeout", said)
    if request["format"] != "text":
        wanted = b"SET FORMAT " + request["format"].encode() + b"\n"
        said = line_after(connection, wanted, request["try_s"])
        if said.strip().upper() != b"OK":
            raise UnusableError("no-format", said)
    send(connection, b"STATUS\n", request["try_s"])
    answer, end = receive(connection, Deadline(request["answer_s"]), request["limit_bytes"])
    return {"closed": "answered", "limit": "over-limit", "late": "late"}[end], answer


def line_after(connection, words, seconds):
    send(connection, words, seconds)
    said, end = receive(connection, Deadline(seconds), LINE_LIMIT, b"\n")
    if end == "until":
        return said
    raise UnusableError({"late": "silent", "closed": "closed"}.get(end, "not-ras"), said)


def send(connection, words, seconds):
    connection.settimeout(seconds)
    try:
        connection.sendall(words)
    except OSError as error:
        raise UnusableError("silent" if is_timeout(error) else "closed") from error


def main(request):
    time.sleep(request["wait_s"])  # between two answers that are compared
    why = enter_network_of(request["pid"])
    told, answer = ({"outcome": "no-way", "said": why}, b"") if why else ask(request)
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + answer)


if __name__ == "__main__":
    main(json.loads(sys.stdin.read()))
