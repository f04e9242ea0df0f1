"""A node's raw answer becomes a NodeReport; whatever it sent, this ends, is bounded and honest.

Nothing a node sends raises: a line that cannot be read is a PROBE_ERROR or a note, a stream without
its end line is DIED, and a check that said nothing is MISSING.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import msgspec

from brctl.model.command import CommandResult, Outcome
from brctl.model.foreign_json import ForeignJsonError, is_plain_number, read_foreign_json
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.report import CheckResult, Measurement, NodeReport, ProbeStatus, Value

MEASUREMENTS_LIMIT = 20_000
TEXT_LIMIT = 4096
NAME_LIMIT = 300
NOTES_LIMIT = 50
NOTE_LIMIT = 500


class _Envelope(msgspec.Struct):
    """What a probe prints when all of it is as it should be; read without one object a key."""

    measurements: list[Measurement]
    notes: object = None


_envelope_of = msgspec.json.Decoder(_Envelope)

_STATUS_OF_EXIT = {0: ProbeStatus.MEASURED, 1: ProbeStatus.COULD_NOT_MEASURE}


def parse_report(
    answer: CommandResult, checks: Mapping[str, Check], received_at: datetime | None = None
) -> NodeReport:
    """What one node's answer to the bundle says about these checks."""
    lines = list(_objects(answer.stdout))
    hello = next((line for line in lines if line.get("type") == "hello"), None)
    results = _results(lines, checks)
    outcome, detail = _outcome(answer, hello, lines, len(results), len(checks))
    missing = [
        CheckResult(name, ProbeStatus.MISSING, notes=(detail or "the runner did not report it",))
        for name in checks
        if name not in results
    ]
    return NodeReport(
        node=answer.node,
        outcome=outcome,
        results=(*results.values(), *missing) if hello else (),
        detail=detail,
        seconds=answer.seconds,
        received_at=received_at,
        python=_text(hello.get("python"), 40) if hello else "",
        login_s=_seconds(hello.get("login_s")) if hello else None,
    )


def _outcome(
    answer: CommandResult,
    hello: Mapping[str, object] | None,
    lines: list[Mapping[str, object]],
    reported: int,
    wanted: int,
) -> tuple[Outcome, str]:
    if answer.outcome is not Outcome.ANSWERED:
        return answer.outcome, answer.detail
    if hello is None:
        last = _last_line(answer.stderr) or _last_line(answer.stdout) or "no output"
        return (
            Outcome.UNPARSABLE,
            f"the probe runner did not start (exit {answer.exit_status}): {last}",
        )
    if lines[-1].get("type") != "end":
        return Outcome.DIED, f"the runner ended after {reported} of {wanted} checks"
    return Outcome.ANSWERED, ""


def _objects(stdout: bytes) -> Iterator[Mapping[str, object]]:
    """The JSON objects among the lines; a login shell may print anything before them."""
    for line in stdout.splitlines():
        value = read_line(line)
        if value is not None:
            yield value


def read_line(line: bytes) -> Mapping[str, object] | None:
    """The JSON object of a line; None for any other line."""
    value = _load(line)
    return value if isinstance(value, dict) else None


def _load(text: bytes | str) -> object:
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return _load_odd(text)


def _load_odd(text: bytes | str) -> object:
    """JSON that is not Unicode all through, as `json` reads it; None when it is none."""
    try:
        return read_foreign_json(text)
    except ForeignJsonError:
        return None


def _results(
    lines: list[Mapping[str, object]], checks: Mapping[str, Check]
) -> dict[str, CheckResult]:
    """The first result of each known check; a second one is not believed."""
    results: dict[str, CheckResult] = {}
    for line in lines:
        name = line.get("check")
        known = isinstance(name, str) and name in checks and name not in results
        if line.get("type") == "result" and known:
            check = checks[str(name)]
            results[check.name] = read_result(line, check)
    return results


def read_result(line: Mapping[str, object], check: Check) -> CheckResult:
    """What the runner's line about one check says."""
    stdout = line.get("stdout")
    measurements, notes, understood = _envelopes(stdout if isinstance(stdout, str) else "", check)
    nothing_due = all(spec.optional for spec in check.measurements.values())
    status, why = _status(line, understood, bool(measurements) or nothing_due)
    return CheckResult(
        check=check.name,
        status=status,
        measurements=tuple(measurements),
        notes=tuple(([why] if why else []) + notes)[:NOTES_LIMIT],
        seconds=_seconds(line.get("seconds")) or 0.0,
        stderr=_text(line.get("stderr"), TEXT_LIMIT),
    )


def _status(
    line: Mapping[str, object], understood: bool, measured: bool
) -> tuple[ProbeStatus, str]:
    if line.get("abandoned"):
        return ProbeStatus.TIMED_OUT, "hangs in the kernel (state D); left behind on the node"
    if line.get("timed_out"):
        return ProbeStatus.TIMED_OUT, "killed at its deadline"
    if line.get("over_limit"):
        return ProbeStatus.PROBE_ERROR, "more output than a probe may write"
    exit_status = line.get("exit")
    status = _STATUS_OF_EXIT.get(exit_status) if type(exit_status) is int else None
    if status is None:
        return ProbeStatus.PROBE_ERROR, f"ended with exit status {_status_text(exit_status)}"
    if not understood:
        return ProbeStatus.PROBE_ERROR, "its output is not the envelope of measurements and notes"
    if status is ProbeStatus.MEASURED and not measured:
        return ProbeStatus.COULD_NOT_MEASURE, "it measured nothing"
    return status, ""


def _envelopes(stdout: str, check: Check) -> tuple[list[Measurement], list[str], bool]:
    """Measurements and notes of a probe's output, and whether all of it could be read."""
    texts = [text for text in stdout.splitlines() if text.strip()] if check.stream else [stdout]
    measurements: list[Measurement] = []
    notes: list[str] = []
    understood = bool(texts)
    for text in texts:
        try:
            decoded = _envelope_of.decode(text)
        except (ValueError, RecursionError):
            envelope = _load(text)
        else:
            notes += _notes(decoded.notes)
            _add_sound(decoded.measurements, check, measurements, notes)
            continue
        if not isinstance(envelope, dict) or not isinstance(envelope.get("measurements"), list):
            understood = False
            continue
        notes += _notes(envelope.get("notes"))
        _add_measurements(envelope["measurements"], check, measurements, notes)
    return measurements, notes[:NOTES_LIMIT], understood


def _notes(value: object) -> list[str]:
    return [_text(note, NOTE_LIMIT) for note in value if note] if isinstance(value, list) else []


def _add_sound(
    rows: list[Measurement], check: Check, measurements: list[Measurement], notes: list[str]
) -> None:
    """As `_add_measurements`, for rows whose types are right already."""
    known = check.measurements
    fitting = [
        _bounded(row)
        for row in rows
        if row.name in known
        and len(row.subject) <= NAME_LIMIT
        and row.subject.isprintable()
        and (type(row.value) in (str, bool) or is_plain_number(row.value))
    ][: MEASUREMENTS_LIMIT - len(measurements)]
    measurements += fitting
    _tell_refused(len(rows) - len(fitting), notes)


def _bounded(row: Measurement) -> Measurement:
    long = type(row.value) is str and len(row.value) > TEXT_LIMIT
    return replace(row, value=str(row.value)[:TEXT_LIMIT]) if long else row


def _tell_refused(refused: int, notes: list[str]) -> None:
    if refused:
        notes.append(f"{refused} measurements were not believed: name, subject or value is wrong")


def _add_measurements(
    rows: list[object], check: Check, measurements: list[Measurement], notes: list[str]
) -> None:
    refused = 0
    for row in rows:
        measurement = _measurement(row, check)
        if measurement is None or len(measurements) >= MEASUREMENTS_LIMIT:
            refused += 1
        else:
            measurements.append(measurement)
    _tell_refused(refused, notes)


def _measurement(row: object, check: Check) -> Measurement | None:
    if not isinstance(row, dict):
        return None
    name, subject, value = row.get("name"), row.get("subject"), _value(row.get("value"))
    if not isinstance(name, str) or name not in check.measurements or value is None:
        return None
    if not isinstance(subject, str) or len(subject) > NAME_LIMIT or not subject.isprintable():
        return None
    return Measurement(name, subject, value)


def _value(value: object) -> Value | None:
    if isinstance(value, str):
        return _text(value, TEXT_LIMIT)
    if isinstance(value, bool):
        return value
    return value if isinstance(value, int | float) and is_plain_number(value) else None


def _status_text(status: object) -> str:
    return _text(status, 20) or ("none" if status is None else "unreadable")


def _text(value: object, limit: int) -> str:
    """Text of a scalar; what else stands in its place may be deep or long, and says nothing."""
    text = value if isinstance(value, str) else str(value) if _is_short(value) else ""
    # Lone surrogates pass through JSON and break every later write as UTF-8.
    return text[:limit].encode("utf-8", "replace").decode("utf-8")


def _is_short(value: object) -> bool:
    return isinstance(value, bool) or is_plain_number(value)


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    seconds = float(value) if abs(value) < 1e9 else math.inf
    return seconds if math.isfinite(seconds) and seconds >= 0 else None


def _last_line(raw: bytes) -> str:
    lines = [line for line in raw[-4096:].decode("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1].strip()[:200] if lines else ""
