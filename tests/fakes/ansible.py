"""Where the tests find Ansible, and a stand-in for it that shows what it was given."""

import shutil
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).parent

SHOW = """\
#!/bin/sh
# Says what it was given and copies the files out; it is a fake and speaks to nobody.
echo "$@" > {folder}/argv
env > {folder}/env
cp -rp "$(dirname "$2")"/. {folder}/given
ls -lR "$(dirname "$2")" > {folder}/modes
exit 7
"""


def use_ansible(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ansible-core beside this Python; a test that needs it is skipped where it is not."""
    monkeypatch.setenv("PATH", f"{BIN}:{'/usr/sbin:/usr/bin:/sbin:/bin'}")
    if shutil.which("ansible-playbook") is None:
        pytest.skip("ansible-core is not installed beside this Python")


def use_fake(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of that name first on PATH."""
    program = folder / "bin" / "ansible-playbook"
    program.parent.mkdir()
    program.write_text(SHOW.format(folder=folder))
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
