"""Entry point of the `brctl` command: answers completion without importing the command line."""

import sys


def main() -> None:
    """Run one command and leave with its exit code."""
    if sys.argv[1:2] == ["__complete"]:
        from brctl.cli.complete import complete

        sys.exit(complete(sys.argv[2:]))
    from brctl.cli.main import run

    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
