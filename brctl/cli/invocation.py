"""Flags every command takes, read before or after the verb, and the way a command ends."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

import typer
from typer.core import TyperGroup

from brctl.cli import output
from brctl.cli.stdin_names import nodes_text
from brctl.library.config import Settings, load_settings
from brctl.library.file_tables import TRANSPORT_NAMES
from brctl.model.errors import UsageError, did_you_mean
from brctl.model.exit_codes import ExitCode
from brctl.model.units import parse_duration_s
from brctl.view.notices.page import Page

FORMATS = ("table", "wide", "json", "ndjson", "yaml", "name", "csv", "nagios", "prom", "html")
COLOURS = ("auto", "always", "never")

COMMON_HELP = """\
Flags every command takes, before or after the verb:
  -w, --nodes NODES      only these nodes: gpu[001-008], 'gpu*', @job:llm (help selectors);
                         given twice it means both, `-w -` reads names from stdin
  -x, --exclude NODES    not these nodes; wins over -w
  --context NAME         which context of the configuration
  --config FILE          this configuration file
  -o, --output FORMAT    table wide json ndjson yaml name csv nagios prom html
  --json                 the same as -o json
  --out FILE             write the answer to a file
  -q, --quiet            no hints on stderr
  --color WHEN           auto, always or never (NO_COLOR and CLICOLOR_FORCE count)
  --no-input             never ask               --readonly      refuse every change
  --timeout DUR          longest a command on a node may take; a run's steps keep their own
  -f, --fanout N         nodes at once
  --watch [SECONDS]      status, ls, sweep, dx, job show: look again and again, ctrl+c ends
  --transport NAME       auto asyncssh broker openssh paramiko srun kubectl local
"""


@dataclass(frozen=True, slots=True)
class Invocation:
    """The common flags of one command line, and the environment it runs in."""

    nodes: str | None = None
    exclude: str | None = None
    context: str | None = None
    config: Path | None = None
    output: str = "table"
    out: Path | None = None
    quiet: bool = False
    color: str = "auto"
    no_input: bool = False
    readonly: bool = False
    timeout_s: float | None = None
    fanout: int | None = None
    transport: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    @property
    def is_readonly(self) -> bool:
        """Whether the command line or the environment says so, whatever the context says."""
        return self.readonly or bool(self.environ.get("BRCTL_READONLY"))

    def settings(self) -> Settings:
        """Settings of the chosen context, tightened by the flags."""
        settings = load_settings(self.environ, self.context, self.config)
        if self.fanout is not None:
            settings = replace(settings, ssh=replace(settings.ssh, fanout=self.fanout))
        if self.transport is not None:
            settings = replace(settings, ssh=replace(settings.ssh, transport=self.transport))
        readonly = settings.readonly or self.readonly
        return replace(settings, readonly=readonly, command_limit_s=self.timeout_s)

    def note(self, text: str) -> None:
        """One line for people on stderr; `-q` silences it."""
        if not self.quiet:
            output.say(text)

    def finish(self, page: Page, context: str = "") -> NoReturn:
        """Write the answer in the chosen format and leave with its exit code."""
        output.write(page, self.output, context=context, out=self.out, color=self.color)
        if page.next and self.output in ("table", "wide"):
            self.note("next: " + "   or: ".join(page.next[:2]))
        raise typer.Exit(int(page.exit_code))


VALUE_FLAGS = {
    "-w": "nodes", "--nodes": "nodes", "-x": "exclude", "--exclude": "exclude",
    "--context": "context", "--config": "config", "-o": "output", "--output": "output",
    "--out": "out", "--color": "color", "--timeout": "timeout_s", "-f": "fanout",
    "--fanout": "fanout", "--transport": "transport",
}  # fmt: skip
SWITCH_FLAGS = {
    "-q": "quiet",
    "--quiet": "quiet",
    "--no-input": "no_input",
    "--readonly": "readonly",
}
_ADD_UP = ("nodes", "exclude")
_TEXT_FOLLOWS = ("-m", "--message", "--reason")


def read_common(
    argv: Sequence[str], keep: Sequence[str] = (), environ: Mapping[str, str] | None = None
) -> tuple[Invocation, list[str]]:
    """Split common flags from the rest of a command line; everything after `--` is the rest.

    Flags in `keep` have another meaning for the command and stay in the rest.

    Raises:
        UsageError: A flag lacks its value, or the value makes no sense.
    """
    found: dict[str, object] = {"environ": dict(os.environ if environ is None else environ)}
    rest: list[str] = []
    words = iter(argv)
    for word in words:
        if word == "--":
            rest += [word, *words]
            break
        name, equals, inline = word.partition("=") if word.startswith("--") else (word, "", "")
        if name in keep:
            rest.append(word)
        elif name in VALUE_FLAGS:
            value = inline if equals else next(words, None)
            if value is None:
                raise UsageError(f"{name} needs a value")
            key = VALUE_FLAGS[name]
            found[key] = (
                _joined(found.get(key), _convert(name, value))
                if key in _ADD_UP
                else (_convert(name, value))
            )
        elif name == "-h":
            rest.append("--help")
        elif name == "--json":
            found["output"] = "json"
        elif name in SWITCH_FLAGS:
            found[SWITCH_FLAGS[name]] = True
        else:
            rest.append(word)
            if word in _TEXT_FOLLOWS:
                rest += [text for text in [next(words, None)] if text is not None]
    return Invocation(**found), rest  # type: ignore[arg-type]  # names checked by the tables


def _convert(flag: str, value: str) -> object:
    name = VALUE_FLAGS[flag]
    if name in _ADD_UP:
        return nodes_text(value)
    closed = {"output": FORMATS, "color": COLOURS, "transport": TRANSPORT_NAMES}.get(name)
    if closed and value not in closed:
        raise UsageError(f"{flag} {value}: unknown; {did_you_mean(value, closed)}")
    try:
        if name == "timeout_s":
            return parse_duration_s(value)
        if name == "fanout":
            return _positive(value)
    except ValueError as exc:
        raise UsageError(f"{flag} {value}: {exc}") from exc
    return Path(value) if name in ("out", "config") else value


def _joined(before: object, more: object) -> object:
    """`-w a -w b` means both."""
    return more if before is None else f"{before},{more}"


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise ValueError("must be a whole number of at least 1")
    return number


def new_app(group: type[TyperGroup] | None = None) -> typer.Typer:
    """A Typer application with plain help and our own error handling, the same everywhere."""
    return typer.Typer(
        cls=group,
        rich_markup_mode=None,
        add_completion=False,
        pretty_exceptions_enable=False,
        no_args_is_help=False,
        epilog="Common flags (-w -x -o --json --context -q ...): brctl help",
    )


def leave(code: ExitCode) -> NoReturn:
    """End the command with an exit code; never `return` one, Typer would exit 0."""
    raise typer.Exit(int(code))
