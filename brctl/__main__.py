"""Entry point of the `brctl` command: answers completion without importing the command line."""

import gc
import os
import sys

from brctl.library.own_program import forget_current_directory

GARBAGE_OBJECTS = 20_000
"""How many new objects start a collection; at Python's 700 a fan-out spends 7 % of its CPU so."""

OPEN_PYTHONPATH = (
    "warning: PYTHONPATH has an empty entry, which means the current directory; left out from here "
    'on. Write it as PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}/opt/x"\n'
)


def main() -> None:
    """Run one command and leave with its exit code."""
    if forget_current_directory(os.environ, sys.path):
        sys.stderr.write(OPEN_PYTHONPATH)
    if sys.argv[1:2] == ["__complete"]:
        from brctl.cli.complete import complete

        sys.exit(complete(sys.argv[2:]))
    gc.set_threshold(GARBAGE_OBJECTS, 20, 50)
    from brctl.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
