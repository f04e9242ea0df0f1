"""Entry point of the `brctl` command: answers completion without importing the command line."""

import os
import sys

from brctl.library.own_program import collect_rarely, forget_current_directory

OPEN_PYTHONPATH = (
    "warning: PYTHONPATH has an empty entry, which means the current directory; left out from here "
    'on. Write it as PYTHONPATH="${PYTHONPATH:+$PYTHONPATH:}/opt/x"\n'
)

LINE_BYTES = 1 << 20


def main() -> None:
    """Run one command and leave with its exit code."""
    if forget_current_directory(os.environ, sys.path):
        sys.stderr.write(OPEN_PYTHONPATH)
    if sys.argv[1:2] == ["__complete"]:
        from brctl.cli.complete import complete

        sys.exit(complete(sys.argv[2:]))
    collect_rarely()
    from brctl.cli.main import run

    words = _words_that_come() if sys.argv[1:] == ["__wait"] else sys.argv[1:]
    if words is not None:
        sys.exit(run(words))


def _words_that_come() -> list[str] | None:
    """One command line as JSON from stdin, once the program is read; None where none comes."""
    import json

    import brctl.cli.commands.fix  # noqa: F401  # read before it is needed

    line = sys.stdin.buffer.readline(LINE_BYTES)
    if not line.endswith(b"\n"):
        return None
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return [str(word) for word in json.loads(line)]


if __name__ == "__main__":
    main()
