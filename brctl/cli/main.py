"""Find the command, run it, turn what went wrong into one error and one exit code.

Only the module of the command that was typed is imported: `brctl --help` imports none.
"""

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from brctl import __version__
from brctl.cli.words import ALIASES, BRIDGE_WORDS, WORDS, Word
from brctl.model.errors import BrctlError, ConfigError, UsageError, did_you_mean
from brctl.model.exit_codes import ExitCode

if TYPE_CHECKING:
    from brctl.cli.invocation import Invocation


def run(argv: Sequence[str]) -> int:
    """Run one command line; returns its exit code and never raises for a user's mistake."""
    form = "json" if {"--json", "json"} & set(argv) else "table"
    _write_any_character()
    try:
        if any(text.partition("=")[0] == "--watch" for text in argv):
            return _watch(list(argv), form)
        return _dispatch(list(argv))
    except BrctlError as error:
        from brctl.cli.output import write_error

        write_error(error, form)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)  # noqa: T201
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.OK)
    except Exception as error:  # noqa: BLE001  # the last resort: a bug must not look like a fault
        return _report_disk(error, form) or _report_bug(error)


def _write_any_character() -> None:
    """What the terminal's encoding lacks is written as an escape; it ended the command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _watch(argv: list[str], form: str) -> int:
    """The same command again and again; a mistake of the command line or the files ends it."""
    from brctl.cli.invocation import read_common
    from brctl.cli.output import write_error
    from brctl.cli.watch import display_for, first_verb, read_watch, usual_interval_s, watch

    typed = argv
    wanted_s, is_watch, argv = read_watch(argv)
    if not is_watch:
        return _dispatch(typed)
    word, rest = _find_word(argv)
    invocation, rest = read_common(rest, keep=WORDS[word].keeps)
    if first_verb(rest) in WORDS[word].own_watch:
        return _dispatch(typed)
    usual_s = usual_interval_s(word, rest, WORDS[word].watched)

    def look() -> int:
        try:
            return _dispatch(list(argv))
        except (UsageError, ConfigError):
            raise
        except BrctlError as error:
            write_error(error, form)
            return int(error.exit_code)

    display = display_for(sys.stdout, invocation.output)
    return watch(look, wanted_s or usual_s, display, title=" ".join(["brctl", *argv]))


def _dispatch(argv: list[str]) -> int:
    if argv and argv[0] in ("-h", "--help"):
        print(top_help())  # noqa: T201
        return 0
    if argv and argv[0] == "--version":
        print(f"brctl {__version__}")  # noqa: T201
        return 0
    word, rest = _find_word(argv)
    entry = WORDS[word]
    from brctl.cli.invocation import read_common

    invocation, rest = read_common(rest, keep=entry.keeps)
    return _call(word, entry, rest, invocation)


def _find_word(argv: list[str]) -> tuple[str, list[str]]:
    """The first word that is no common flag is the verb; none means the status screen."""
    from brctl.cli.invocation import VALUE_FLAGS

    skip = False
    for index, text in enumerate(argv):
        if skip:
            skip = False
        elif text.startswith("-"):
            skip = text in VALUE_FLAGS
        else:
            return _known_word(text), argv[:index] + argv[index + 1 :]
    return "status", argv


def _known_word(text: str) -> str:
    word = ALIASES.get(text, text)
    if word in WORDS:
        return word
    if text in BRIDGE_WORDS:
        raise UsageError(
            f"`brctl {text}` is a command of bridge-utils, another program of the same name",
            hint=f"for bridges: /usr/sbin/brctl {text} or `bridge`; for this one: brctl --help",
        )
    raise UsageError(f"no command `{text}`; {did_you_mean(text, [*WORDS, *ALIASES])}")


def _call(word: str, entry: Word, rest: list[str], invocation: "Invocation") -> int:
    import typer

    from brctl.cli.typed import refuse_idle_selection, usage_error

    command = entry.command()
    refuse_idle_selection(word, entry, getattr(command, "commands", {}), rest, invocation)
    try:
        code = command.main(
            args=rest, standalone_mode=False, obj=invocation, prog_name=f"brctl {word}"
        )
    except SystemExit as exc:
        # Typer's status for a reader that is gone is 1, which is an answer of ours.
        if isinstance(exc.__context__, BrokenPipeError):
            raise exc.__context__ from None
        raise
    except typer.Abort as exc:
        raise KeyboardInterrupt from exc
    except typer.TyperException as exc:
        raise usage_error(exc, word) from exc
    return int(code or 0)


def top_help() -> str:
    """`brctl --help`: every command with its sentence, from the table."""
    from brctl.cli.words import GROUPS

    lines = ["Usage: brctl [FLAGS] COMMAND ...", ""]
    lines += ["Find what stops a large GPU training job, say how sure, bring the job back."]
    for title, words in GROUPS.items():
        lines += ["", f"{title}:"]
        lines += [f"  {word:<16}{WORDS[word].help}" for word in words if word in WORDS]
    lines += ["", "brctl COMMAND --help shows one command.  brctl help exit-codes"]
    return "\n".join(lines)


def _report_disk(error: Exception, form: str) -> int:
    """A full or read-only disk is no bug of ours; 0 when it is something else."""
    from brctl.cli.disk_trouble import disk_trouble
    from brctl.cli.output import write_error

    trouble = disk_trouble(error)
    if trouble is None:
        return 0
    write_error(trouble, form)
    return int(trouble.exit_code)


def _report_bug(error: Exception) -> int:
    from brctl.cli.output import say
    from brctl.library.config import user_state_dir
    from brctl.library.durable_files import private_dir

    text = "".join(traceback.format_exception(error))
    folder = user_state_dir(os.environ) / "crashes"
    say(f"error: unexpected {type(error).__name__}: {error}")
    try:
        path = private_dir(folder) / f"crash-{os.getpid()}.txt"
        path.write_text(text, encoding="utf-8")
        say(f"try:   attach {path} to a bug report; no node was changed by this error itself")
    except OSError:
        say(text)
    return int(ExitCode.BUG)
