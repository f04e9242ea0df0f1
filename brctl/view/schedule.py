"""systemd units and crontab lines for a regular sweep or test of standbys, ready to install."""

import re
import shlex
from collections.abc import Sequence

from brctl.model.units import describe_duration

WHAT = {"brctl-sweep": "health sweep", "brctl-standby": "test of the standbys"}
"""Names of the units and what they run."""

_SAFE_PATH = re.compile(r"/[A-Za-z0-9._/+@-]*")

SERVICE = """\
# /etc/systemd/system/{name}.service
[Unit]
Description=brctl {what}
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target

[Service]
Type=oneshot
ExecStart={command}
# 1 and 2 are findings; 3 and above mean that it could not tell, which needs a person.
SuccessExitStatus=1 2
TimeoutStartSec={timeout_s}
Nice=10
NoNewPrivileges=yes
ProtectSystem=full
PrivateTmp=yes
"""

TIMER = """\
# /etc/systemd/system/{name}.timer
[Unit]
Description=brctl {what} every {every}

[Timer]
OnCalendar={calendar}
RandomizedDelaySec={spread_s}
# Without this systemd gathers timers and undoes the spread.
AccuracySec=1us
Persistent=true

[Install]
WantedBy=timers.target
"""


WATCH_SERVICE = """\
# /etc/systemd/system/brctl-watch.service
[Unit]
Description=brctl watch
Documentation=man:systemd.service(5)
After=network-online.target
Wants=network-online.target
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
# It says so after each look; one that hangs is started anew.
WatchdogSec=60
Restart=on-failure
RestartSec=20
# A run that it started goes on without it.
KillMode=process
MemoryMax=1G
NoNewPrivileges=yes
ProtectSystem=full

[Install]
WantedBy=multi-user.target
"""


def calendar_of(every_s: float) -> str:
    """The OnCalendar expression for an interval that divides an hour or a day.

    Raises:
        ValueError: The interval cannot be written as a calendar expression.

    Examples:
        >>> calendar_of(300)
        '*:0/5'
        >>> calendar_of(7200)
        '0/2:00'
    """
    minutes, rest = divmod(every_s, 60)
    if rest == 0 and 1 <= minutes < 60 and 60 % minutes == 0:
        return f"*:0/{minutes:.0f}"
    hours, rest = divmod(every_s, 3600)
    if rest == 0 and 1 <= hours <= 24 and 24 % hours == 0:
        return "00:00" if hours == 24 else f"0/{hours:.0f}:00"
    raise ValueError(
        f"{describe_duration(every_s)}: must divide an hour or a day, such as 5m, 30m, 2h"
    )


def cron_fields(every_s: float) -> str:
    """The five time fields of a crontab line for an interval.

    Examples:
        >>> cron_fields(300)
        '*/5 * * * *'
    """
    calendar_of(every_s)
    minutes = round(every_s / 60)
    if minutes < 60:
        return f"*/{minutes} * * * *"
    return "0 0 * * *" if minutes == 1440 else f"0 */{minutes // 60} * * *"


def systemd_units(command: Sequence[str], every_s: float, name: str = "brctl-sweep") -> str:
    """A service and a timer, one after the other, each headed by its path.

    Raises:
        ValueError: The interval or the program's path cannot stand in a unit.
    """
    service = SERVICE.format(
        name=name,
        what=WHAT[name],
        command=_command(command),
        timeout_s=max(60, round(every_s * 0.8)),
    )
    timer = TIMER.format(
        name=name,
        what=WHAT[name],
        every=describe_duration(every_s),
        calendar=calendar_of(every_s),
        spread_s=max(1, round(every_s / 5)),
    )
    return f"{service}\n{timer}"


def watch_unit(command: Sequence[str]) -> str:
    """A service that watches, headed by its path.

    Raises:
        ValueError: The program's path cannot stand in a unit.
    """
    return WATCH_SERVICE.format(command=_command(command))


def _command(command: Sequence[str]) -> str:
    if not _SAFE_PATH.fullmatch(command[0]):
        raise ValueError(f"{command[0]!r}: a unit needs a plain absolute path of the program")
    return " ".join(_quote(word) for word in command)


def _quote(word: str) -> str:
    """A word as systemd reads it: % and $ doubled, quoted when it is not plain."""
    text = word.replace("\\", "\\\\").replace("%", "%%").replace("$", "$$").replace('"', '\\"')
    return text if re.fullmatch(r"[A-Za-z0-9._/+@:=%$,\[\]-]+", text) else f'"{text}"'


def crontab_line(command: Sequence[str], every_s: float, *, spread: bool = True) -> str:
    """One crontab line; a sweep keeps its own lock and slot, so no flock and no sleep.

    Raises:
        ValueError: The interval cannot be written in cron's fields.
    """
    slot = ("--jitter", f"{max(1, round(every_s / 5))}s") if spread else ()
    words = [*command, *slot]
    # In a crontab % ends the command.
    text = " ".join(shlex.quote(word) for word in words).replace("%", r"\%")
    why = "# only what changed is printed, so that cron mails only that"
    return f"{why}\n{cron_fields(every_s)} {text}\n"
