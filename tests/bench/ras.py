"""How sure NCCL's RAS service is reached beside a stopped process, and what NCCL's own client says.

    python -m tests.bench.ras [--client NCCLRAS] [--questions 200] [--processes 8]

All processes of a node share the port and the kernel picks one. `--client` is NCCL's `ncclras`
(`client.cc` compiles alone with two stub headers); it judges the stand-in the tests talk to.
"""

import argparse
import os
import signal
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from importlib import import_module

from tests.checks.test_nccl_ras import RELEASES
from tests.fakes.ras_listener import RasListener

TRY_S, TRIES = 1.0, 4
ask = import_module("checks._nccl_ras").ask


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", default="")
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    chosen = parser.parse_args()
    if chosen.client:
        _judge_by(chosen.client)
    return _reach(chosen.questions, chosen.processes)


def _judge_by(client: str) -> None:
    """Every release through the real client, in each of its forms."""
    for name, release in RELEASES.items():
        for flags in ((), ("-v",), ("-t", "0"), ("-f", "json")):
            with RasListener(release) as listener:
                command = [client, "-h", "127.0.0.1", "-p", str(listener.port), *flags]
                done = subprocess.run(command, capture_output=True, check=False)
            wanted = release.json if flags == ("-f", "json") else release.text
            said = "as sent" if done.stdout == wanted else done.stderr.decode().strip()[:70]
            print(f"{name:8} {' '.join(flags) or '-':10} exit {done.returncode}  {said}")


def _reach(questions: int, processes: int) -> int:
    release = RELEASES["2.30.7"]
    tries: Counter[object] = Counter()
    with RasListener(release) as first, ExitStack() as stack:
        for number in range(processes - 1):
            stack.enter_context(Neighbour(first.port, stopped=number == 0))
        request = {
            "pid": os.getpid(), "addresses": ["127.0.0.1"], "port": first.port, "tries": TRIES,
            "format": "text", "try_s": TRY_S, "timeout_s": 5,
            "answer_s": 12.0, "limit_bytes": 1 << 20, "wait_s": 0,
        }  # fmt: skip
        for _ in range(questions):
            told, _answer = ask(request)
            tries[told["tries"] if told["outcome"] == "answered" else told["outcome"]] += 1
    answered = sum(count for key, count in tries.items() if isinstance(key, int))
    rows = ", ".join(f"{key}: {count}" for key, count in sorted(tries.items(), key=str))
    print(f"{answered} of {questions} answered within {TRIES} tries, by tries {rows}")
    return 0 if answered == questions else 1


_LISTEN = """
import sys
from tests.checks.test_nccl_ras import RELEASES
from tests.fakes.ras_listener import RasListener
with RasListener(RELEASES["2.30.7"], shares=int(sys.argv[1])):
    print("up", flush=True)
    sys.stdin.read()
"""


class Neighbour:
    """Another process of the node on the same port."""

    def __init__(self, port: int, *, stopped: bool) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            [sys.executable, "-c", _LISTEN, str(port)], stdin=pipe, stdout=pipe
        )
        self._stopped = stopped

    def __enter__(self) -> None:
        assert self._process.stdout is not None
        self._process.stdout.readline()
        if self._stopped:
            self._process.send_signal(signal.SIGSTOP)

    def __exit__(self, *_exc: object) -> None:
        self._process.kill()
        self._process.communicate()


if __name__ == "__main__":
    sys.exit(main())
