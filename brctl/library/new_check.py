"""A new check to start from: a folder with a check.yaml and a probe that run as they are."""

import re
from pathlib import Path

from brctl.model.errors import ConfigError, UsageError

_NAME = re.compile(r"[a-z][a-z0-9_]*\.[a-z][a-z0-9_]*")

_YAML = """\
apiVersion: brctl.dev/v1
kind: Check
name: {name}
title: Free space of /tmp
why: Say here what goes wrong on a node that this check would have caught.
source: Say here which document gives the thresholds.
level: 1
needs: []
deadline: 5s
profiles: [sweep]
parameters:
  path: /tmp
measurements:
  {name}.free_bytes: {{unit: bytes, what: free for an ordinary user}}
evidence:
  - kind: {name}.free_bytes
    when: {{lt: 1000000000}}
    weight: hints
    fault: disk-full
    say: "{{value}} bytes are free"
    source: own
    otherwise: clears
cross_check: df -B1 /tmp
"""

_PROBE = '''\
"""RUNS ON THE NODE. Reads the free space of one path; changes nothing."""

import json
import os
import sys


def measure(parameters):
    """Rows of name, subject and value; what cannot be read is a note, never a zero."""
    rows, notes = [], []
    try:
        found = os.statvfs(parameters["path"])
        free = found.f_bavail * found.f_frsize
        rows.append({{"name": "{name}.free_bytes", "subject": "", "value": free}})
    except OSError as exc:
        notes.append(str(exc))
    return rows, notes


if __name__ == "__main__":
    measured, missing = measure(json.load(sys.stdin))
    json.dump({{"measurements": measured, "notes": missing}}, sys.stdout)
    sys.exit(0 if measured else 1)
'''


def write_new_check(name: str, into: Path) -> Path:
    """Write the folder of a new check and return it.

    Raises:
        UsageError: The name is not `domain.check`.
        ConfigError: The folder already exists; nothing was written.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"{name!r}: a check is called domain.check, in small letters: site.tmp")
    folder = into.joinpath(*name.split("."))
    if folder.exists():
        raise ConfigError(f"{folder} already exists")
    folder.mkdir(parents=True)
    (folder / "check.yaml").write_text(_YAML.format(name=name), encoding="utf-8")
    (folder / "probe.py").write_text(_PROBE.format(name=name), encoding="utf-8")
    return folder
