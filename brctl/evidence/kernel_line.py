"""One line of a kernel log: its time and its message, whatever printed it.

The same message arrives as raw kmsg (`6,1234,98765,-;text`), with `[secs.usecs]` or a date in
brackets, behind `kern  :warn  :`, behind a syslog or ISO prefix, or bare. Lines come from the node
and are hostile: bounded, and matched by patterns without nested repetition.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

LINE_LIMIT = 2048
YEARS = range(1970, 2200)
"""A line of another year has no time: sums with it would leave the calendar."""

_KMSG = re.compile(
    r"(?P<pri>\d{1,6}),\d{1,20},(?P<usec>\d{1,18}),[^;]{0,80};(?P<rest>.*)", re.DOTALL
)
_PRIORITY = re.compile(r"<\d{1,3}>(?P<rest>.*)", re.DOTALL)
_SECONDS = re.compile(r"\[\s{0,12}(?P<sec>\d{1,12}\.\d{1,9})\]\s?(?P<rest>.*)", re.DOTALL)
_CTIME = re.compile(
    r"\[[A-Z][a-z]{2} [A-Z][a-z]{2}\s{1,2}\d{1,2} \d\d:\d\d:\d\d \d{4}\]\s?(?P<rest>.*)", re.DOTALL
)
_FACILITY = re.compile(r"[a-z0-9]{2,8}\s{0,6}:[a-z]{3,7}\s{0,6}:\s?(?P<rest>.*)", re.DOTALL)
_ISO = re.compile(
    r"(?P<iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d))\s(?P<rest>.*)",
    re.DOTALL,
)
_SYSLOG = re.compile(r"[A-Z][a-z]{2}\s{1,2}\d{1,2} \d\d:\d\d:\d\d (?P<rest>.*)", re.DOTALL)
_SENDER = re.compile(r"\S{1,255} kernel: (?P<rest>.*)", re.DOTALL)
_BARE_SENDER = re.compile(r"kernel: (?P<rest>.*)", re.DOTALL)
_PREFIXES = (
    _KMSG, _PRIORITY, _FACILITY, _SECONDS, _CTIME, _ISO, _SYSLOG, _SENDER, _BARE_SENDER,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class KernelLine:
    """One message.

    Attributes:
        uptime_s: Seconds since boot when it was printed; None when the line does not say.
        at: The moment, UTC; None when neither line nor boot time say it.
    """

    message: str
    raw: str
    uptime_s: float | None = None
    at: datetime | None = None


def parse_kernel_line(raw: str, boot_at: datetime | None = None) -> KernelLine:
    """Take prefix after prefix off a line until only the message is left.

    Dates without a zone are the node's local time, so they do not become a moment.
    """
    rest, uptime_s, at = raw[:LINE_LIMIT].strip("\n"), None, None
    for _ in range(len(_PREFIXES)):
        match = next((m for p in _PREFIXES if (m := p.match(rest))), None)
        if match is None:
            break
        found = match.groupdict()
        rest = found["rest"]
        if "usec" in found:
            uptime_s = int(found["usec"]) / 1e6
        elif "sec" in found:
            uptime_s = float(found["sec"])
        elif "iso" in found:
            at = _parse_iso(found["iso"]) or at
    if at is None and uptime_s is not None and boot_at is not None:
        at = _after(boot_at, uptime_s)
    return KernelLine(rest.strip(), raw[:LINE_LIMIT], uptime_s, at)


def _parse_iso(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text.replace(",", ".")).astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at.year in YEARS else None


def _after(boot_at: datetime, uptime_s: float) -> datetime | None:
    try:
        at = boot_at + timedelta(seconds=uptime_s)
    except OverflowError:
        return None
    return at if at.year in YEARS else None
