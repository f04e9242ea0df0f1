"""A run is a process of its own: `python -m brctl.engine.runs.process RUN_DIR`.

It owns its folder by a kernel lock, so closing a terminal, losing SSH or ending the TUI never stops
it, and two of them can never run the same run. Its exit code is the run's.
"""

import sys
from pathlib import Path

from brctl.library.own_program import collect_rarely


def main(arguments: list[str]) -> int:
    """Carry the run out; a run that waits for people leaves a small process behind that does."""
    collect_rarely()
    from brctl.engine.runs import carry_out, wait
    from brctl.library.programs.preloaded import PRELOADED, given_run
    from brctl.model.exit_codes import ExitCode

    if arguments[0] == PRELOADED:
        given = given_run(int(arguments[1]))
        if given is None:
            return ExitCode.OK
        arguments = given
    code = carry_out.main(arguments)
    if code == ExitCode.WAITING:
        wait.become(wait.WAIT_MODULE, Path(arguments[0]))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
