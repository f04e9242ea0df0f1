"""Start ranks by forking after the import of torch, which is most of what a rank costs to start.

Reads one JSON request a line: start a rank, or ask how one ended. A rank here runs the trainer's
own `train`; only the command line in front of it is left out.
"""

import gc
import json
import os
import sys
from pathlib import Path

from brctl.training.replay import replay
from brctl.training.trainer import Options, train


def start(environment: dict[str, str], log: str, options: dict[str, float | str]) -> int:
    """Fork a rank and return its process id."""
    pid = os.fork()
    if pid == 0:
        os.environ.clear()
        os.environ.update(environment)
        _run(Path(log), options)
    return pid


def _run(log: Path, options: dict[str, float | str]) -> None:
    status = 1
    try:
        file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for target in (1, 2):
            os.dup2(file, target)
        data_ranks = int(options.pop("data_ranks", 0))
        chosen = Options(**options)  # type: ignore[arg-type]  # whole numbers stay whole in JSON
        if data_ranks:
            replay(chosen, data_ranks, Path(os.environ["BRCTL_CHECKPOINT_DIR"]))
        else:
            train(chosen)
        status = 0
    except BaseException:  # noqa: BLE001  # a child must never return into the loop below
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def ended(pid: int) -> int | None:
    """Exit status, negative for a signal; None while the rank runs."""
    done, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if done else None


def main() -> None:
    # A rank that looks for garbage among the modules writes to, and so copies, each page of them.
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        do = request.pop("do")
        answer = start(**request) if do == "start" else ended(**request)
        os.write(1, f"{json.dumps(answer)}\n".encode())


if __name__ == "__main__":
    main()
