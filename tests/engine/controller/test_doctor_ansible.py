"""`brctl doctor` speaks of Ansible where a playbook needs it."""

from pathlib import Path

import pytest

from brctl.engine.controller.doctor import ansible
from brctl.library.config import Settings, load_settings
from brctl.model.sweeps.sweep import Health

NEEDS = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: bios, title: Set the BIOS, risk: low}
steps:
  - id: look
    uses: ansible.playbook
    with: {nodes: n1, playbook: /opt/site/bios.yml, check: always}
    safety: read
"""
CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts: {prod: {inventory: []}}
"""


def settings(folder: Path) -> Settings:
    (folder / "config.yaml").write_text(CONFIG)
    (folder / "playbooks").mkdir(parents=True, exist_ok=True)
    return load_settings({"HOME": str(folder)}, None, folder / "config.yaml")


def test_it_is_missed_only_where_a_playbook_uses_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    known = settings(tmp_path)
    assert next(ansible(known)).health is Health.OK
    (tmp_path / "playbooks" / "bios.yaml").write_text(NEEDS)
    finding = next(ansible(known))
    assert finding.health is Health.WARNING
    assert "bios needs it" in finding.text
    assert "pip install ansible-core" in finding.hint
