"""Entry point of the `brctl` command: answers completion without importing the command line."""

import os
import sys

from brctl.library.own_program import collect_rarely, forget_current_directory

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
    collect_rarely()
    from brctl.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
