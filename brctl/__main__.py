"""Entry point of the `brctl` command: answers completion without importing the command line."""

import gc
import sys

GARBAGE_OBJECTS = 20_000
"""How many new objects start a collection; at Python's 700 a fan-out spends 7 % of its CPU so."""


def main() -> None:
    """Run one command and leave with its exit code."""
    if sys.argv[1:2] == ["__complete"]:
        from brctl.cli.complete import complete

        sys.exit(complete(sys.argv[2:]))
    gc.set_threshold(GARBAGE_OBJECTS, 20, 50)
    from brctl.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
