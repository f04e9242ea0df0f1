"""Units and crontab lines that the real programs accept."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from brctl.view.schedule import calendar_of, cron_fields, crontab_line, systemd_units
from tests.timeouts import TIMEOUT_S

ANALYZE = shutil.which("systemd-analyze")
EVERY = [60, 300, 1800, 3600, 7200, 86400]


@pytest.mark.parametrize("every_s", EVERY)
@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_systemd_accepts_the_units(tmp_path: Path, every_s: float) -> None:
    """`systemd-analyze verify` has nothing to say, awkward arguments included."""
    command = ["/bin/sh", "sweep", "--cron", "-w", "@all!n[1-3]", "--prom", '/tmp/a "b" 100%$x']
    text = systemd_units(command, every_s)
    paths = []
    for part in re.split(r"(?m)^(?=# /etc/systemd)", text):
        if part.strip():
            paths.append(tmp_path / part.split()[1].rsplit("/", 1)[1])
            paths[-1].write_text(part)
    assert ANALYZE
    done = subprocess.run(
        [ANALYZE, "verify", *map(str, paths)], capture_output=True, text=True, timeout=TIMEOUT_S
    )
    own = [line for line in done.stderr.splitlines() if "brctl-sweep" in line]
    assert (done.returncode, own) == (0, [])


@pytest.mark.parametrize("every_s", EVERY)
@pytest.mark.skipif(ANALYZE is None, reason="needs systemd-analyze")
def test_the_calendar_has_the_interval(every_s: float) -> None:
    """By systemd's own reading of the expression, two moments apart."""
    assert ANALYZE
    done = subprocess.run(
        [ANALYZE, "calendar", "--iterations=2", "--base-time=2026-07-01 00:00:01 UTC",
         calendar_of(every_s)],
        capture_output=True, text=True, timeout=TIMEOUT_S, check=True,
        env={"TZ": "UTC", "LC_ALL": "C"},
    )  # fmt: skip
    times = re.findall(r"(\d\d):(\d\d):(\d\d) UTC", done.stdout)
    seconds = [int(h) * 3600 + int(m) * 60 + int(s) for h, m, s in times[-2:]]
    assert (seconds[1] - seconds[0]) % 86400 == every_s % 86400


@pytest.mark.parametrize("every_s", [0, 7, 420, 90_000, 5400])
def test_an_interval_that_drifts_is_refused(every_s: float) -> None:
    """Seven minutes do not divide an hour: cron would do something else."""
    with pytest.raises(ValueError, match="must divide an hour or a day"):
        calendar_of(every_s)


def test_a_crontab_line_keeps_its_words() -> None:
    """Quoted for the shell, % escaped for cron, spread by brctl itself."""
    line = crontab_line(["/usr/bin/brctl", "sweep", "--cron", "-w", "n[1-3]", "a b%"], 300)
    assert line.splitlines()[1] == (
        r"*/5 * * * * /usr/bin/brctl sweep --cron -w 'n[1-3]' 'a b\%' --jitter 60s"
    )
    assert [cron_fields(e) for e in (3600, 7200, 86400)] == [
        "0 */1 * * *", "0 */2 * * *", "0 0 * * *",
    ]  # fmt: skip


def test_a_program_path_that_could_be_read_as_more_is_refused() -> None:
    """A unit's program is a plain absolute path."""
    with pytest.raises(ValueError, match="plain absolute path"):
        systemd_units(["brctl", "sweep"], 300)
