"""stdout is data, stderr is for people: documents, tables, errors."""

import csv
import io
import json
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from brctl import API_VERSION, __version__
from brctl.engine.controller.clock import now
from brctl.model.errors import BrctlError, UsageError
from brctl.model.exit_codes import ExitCode
from brctl.model.units import rfc3339
from brctl.view.fitted import fitted
from brctl.view.notices.page import Json, Page
from brctl.view.sparkline import BLOCKS, IN_ASCII
from brctl.view.text import printable

_ANSI = {"CRIT": "31;1", "CRITICAL": "31;1", "FAIL": "31;1", "WARN": "33", "UNKNOWN": "35"}
_ANSI |= {"HIGH": "31;1", "MEDIUM": "33", "OK": "32", "ok": "32"}
_STATE_WORD = re.compile(r"\b(" + "|".join(_ANSI) + r")\b")


_VERBATIM = frozenset(
    {
        "Answers", "Completions", "Config", "ConfigInit", "IncidentExport", "JobInit", "LogLesson",
        "RenderedNotice", "Schedule", "Schema", "Sudoers", "VerdictExport",
    }
)  # fmt: skip
"""Files, and what other programs print: their lines are theirs."""


def say(text: str) -> None:
    """One line on stderr, after what stdout already holds."""
    sys.stdout.flush()
    print(_fitted(text, sys.stderr), file=sys.stderr, flush=True)  # noqa: T201


def _fitted(text: str, stream: TextIO) -> str:
    """As wide as the terminal, or as COLUMNS says; a pipe has no width."""
    if not stream.isatty() and not os.environ.get("COLUMNS", "").isdigit():
        return text
    return fitted(text, shutil.get_terminal_size().columns)


def envelope(page: Page, context: str) -> dict[str, Json]:
    """The document a program reads; see `brctl schema list`."""
    return {
        "apiVersion": API_VERSION,
        "kind": page.kind,
        "brctl": __version__,
        "context": context,
        "generatedAt": rfc3339(now()),
        "exit_code": int(page.exit_code),
        **page.body,
        "errors": page.body.get("errors", []),
        "next": list(page.next),
    }


def render(page: Page, form: str, context: str) -> str:
    """The page in one output format, ending in a newline unless it is empty."""
    if form == "json":
        return _indented(envelope(page, context)) + "\n"
    if form == "ndjson":
        rows = page.rows or (envelope(page, context),)
        return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows)
    if form == "yaml":
        import yaml

        return yaml.safe_dump(json.loads(json.dumps(envelope(page, context))), sort_keys=False)
    if form == "name":
        return "".join(name + "\n" for name in page.names)
    if form == "csv":
        return _csv(page)
    if form in ("table", "wide"):
        return page.text + "\n" if page.text else ""
    if form == "html" and page.html:
        return page.html
    raise UsageError(f"-o {form}: `{page.kind}` has no such form", hint="use -o json")


def _indented(document: Mapping[str, Json]) -> str:
    """As `json.dumps(indent=2)`, which takes ten times as long: its C encoder does not indent."""
    import msgspec

    try:
        return msgspec.json.format(json.dumps(document, allow_nan=False), indent=2)
    except msgspec.DecodeError:  # half of a character, as a file's name may hold
        return json.dumps(document, indent=2, allow_nan=False)


def _csv(page: Page) -> str:
    """A line for each row of the list, or one for the document's own keys where it is no list."""
    rows = [flat_row(row) for row in page.table or page.rows or _rows_of(page.body)]
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=names, restval="")
    writer.writeheader()
    writer.writerows({key: _cell(value) for key, value in row.items()} for row in rows)
    return buffer.getvalue()


def _rows_of(body: Mapping[str, Json]) -> Sequence[Mapping[str, Json]]:
    """The document as one row; a list that is empty has none."""
    return () if list(body.values()) == [[]] else (body,)


def flat_row(row: Mapping[str, Json]) -> dict[str, Json]:
    """One level of names, `suspects.folded`; lists of words as one text, other lists as a number.

    A chain of evidence is no cell: it was a Python literal of a megabyte.
    """
    found: dict[str, Json] = {}
    for key, value in row.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{name}": inner for name, inner in flat_row(value).items()}
        elif isinstance(value, (list, tuple)):
            plain = all(isinstance(item, (str, int, float)) for item in value)
            found[key] = " ".join(map(str, value)) if plain else len(value)
        else:
            found[key] = value
    return found


_FORMULA = ("=", "+", "-", "@")


def _cell(value: Json) -> Json:
    """Text without controls; what a spreadsheet would take for a formula begins with a quote."""
    if not isinstance(value, str):
        return value
    text = printable(value, limit=10 * len(value) + 1)
    is_number = _NUMBER.fullmatch(text) is not None
    return f"'{text}" if text.lstrip().startswith(_FORMULA) and not is_number else text


_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def write(page: Page, form: str, *, context: str, out: Path | None, color: str) -> None:
    """Write the page to stdout, or to a file without colour."""
    text = render(page, form, context)
    if out is not None:
        _write_file(out, text)
        return
    if form == "table" and page.kind not in _VERBATIM:
        text = _fitted(text, sys.stdout)
    if form in ("table", "wide") and wants_colour(color, os.environ, tty=sys.stdout.isatty()):
        text = _STATE_WORD.sub(lambda m: f"\x1b[{_ANSI[m[0]]}m{m[0]}\x1b[0m", text)
    sys.stdout.write(shown_on(sys.stdout, text))
    sys.stdout.flush()


def shown_on(stream: TextIO, text: str) -> str:
    """The text with its drawings in ASCII where the stream's encoding has no others."""
    try:
        BLOCKS.encode(stream.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(IN_ASCII)
    return text


def _write_file(path: Path, text: str) -> None:
    """Write --out; a full disk is said elsewhere.

    Raises:
        UsageError: The path cannot be a file of ours.
    """
    try:
        path.write_text(text, encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as exc:
        raise UsageError(f"--out {path}: cannot be written: {exc.strerror}") from exc


def wants_colour(color: str, environ: Mapping[str, str], *, tty: bool) -> bool:
    """`--color` beats NO_COLOR, NO_COLOR beats CLICOLOR_FORCE, and that beats the terminal."""
    if color != "auto":
        return color == "always"
    if environ.get("CLICOLOR_FORCE", "0") not in ("", "0") and not environ.get("NO_COLOR"):
        return True
    return tty and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def write_error(error: BrctlError, form: str) -> None:
    """One error for one mistake: a document when asked for one, else three lines on stderr."""
    if form in ("json", "ndjson", "yaml"):
        page = Page("Error", error_body(error), "", exit_code=ExitCode(error.exit_code))
        sys.stdout.write(render(page, form, ""))
        sys.stdout.flush()
        return
    if error.cause:
        say(f"cause: {error.cause}")
    if error.hint:
        say(f"try:   {error.hint}")
    say(f"error: {error}")


def with_error(page: Page, error: BrctlError) -> Page:
    """An answer beside what failed: told on stderr, and in `errors` and the exit code of it."""
    write_error(error, "table")
    body = {**page.body, "errors": error_body(error)["errors"]}
    return replace(page, exit_code=error.exit_code, body=body)


def error_body(error: BrctlError) -> dict[str, Json]:
    """The keys of an Error document; its class is the one of the exit code, as documented."""
    name = next(kind.__name__ for kind in type(error).__mro__ if "exit_code" in vars(kind))
    detail = {"class": name, "message": str(error), "cause": error.cause, "try": error.hint}
    return {"error": detail, "errors": [detail]}
