"""The schema an editor completes from and `play validate` agree wherever a schema can see."""

from typing import Any

import pytest

from brctl.actions.registry import about_verbs
from brctl.library.guards import load_guards
from brctl.library.playbook_schema import _STEP, _TOP, guards_schema, playbook_schema
from brctl.library.playbooks import STEP_KEYS, TOP_KEYS, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.library.strict_yaml import parse_document
from brctl.model.errors import ConfigError
from brctl.playbook.verbs import VERBS
from tests.library.test_playbooks import GOOD

jsonschema: Any = pytest.importorskip("jsonschema")
SHIPPED = sorted(shipped_dir("playbooks").glob("*.yaml"))


def validator(schema: dict[str, Any]) -> Any:
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.fixture(scope="module")
def of_playbooks() -> Any:
    return validator(playbook_schema(about_verbs()))


def problems(found: Any, text: bytes) -> list[str]:
    return [error.message for error in found.iter_errors(parse_document(text, "x.yaml").data)]


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_every_shipped_playbook_fits_both(path: Any, of_playbooks: Any) -> None:
    """No editor underlines what brctl runs."""
    read_playbook(path.read_bytes(), str(path))
    assert problems(of_playbooks, path.read_bytes()) == []


MISTAKES = [
    ("uses: node.cordon", "uses: node.cordn"),
    ("    undo: auto\n  - id: reserve", "  - id: reserve"),
    ("with: {job: $(inputs.job)}\n    safety: d", "safety: d"),
    ("with: {count:", "with: {counts:"),
    ("blast_radius:", "blast_radios:"),
    ("window: 6h", "window: 6 hours"),
    ("max_nodes: 3", "max_nodes: three"),
    ("timeout: 1m", "timeout: 1 minute"),
    ("safety: destructive", "safety: reversible\n    undo: auto"),
    ("type: job", "type: jobs"),
    ("    uses: job.stop", "    usess: job.stop"),
    ("need: one", "need: three"),
    ("times: 2", "times: 20"),
    (
        "approval:\n  gate_before: stop\n  policy:\n"
        "    - {when: len(inputs.suspects) <= 4, need: one}\n",
        "",
    ),
]


@pytest.mark.parametrize(("old", "new"), MISTAKES)
def test_a_deliberate_mistake_fails_in_both(old: str, new: str, of_playbooks: Any) -> None:
    """The same sound file, one slip at a time."""
    assert problems(of_playbooks, GOOD.encode()) == []
    assert old in GOOD
    wrong = GOOD.replace(old, new, 1).encode()
    assert problems(of_playbooks, wrong)
    with pytest.raises(ConfigError):
        read_playbook(wrong, "x.yaml")


def test_every_key_and_verb_of_the_tables_is_described() -> None:
    """A new key or verb reaches editors, or this fails."""
    assert set(TOP_KEYS) <= set(_TOP)
    assert set(STEP_KEYS) <= set(_STEP)
    actual = about_verbs()
    assert set(actual) == set(VERBS)
    assert all(text and not text.startswith(name) for name, text in actual.items())


@pytest.mark.parametrize(
    ("lines", "sound"),
    [
        ("blast_radius: {max_nodes: 5}\nmin_healthy: [{scope: rack, percent: 80}]", True),
        ("freeze: {calendar: c, action: refuse}\noverride: {allow_groups: [sre]}", True),
        ("approval: [{need: one, role: sre, when: nodes > 4}]", True),
        ("freeze: {action: refuse}", False),
        ("freeze: {calendar: c, action: warn}", False),
        ("blast_radius: {nodes: 5}", False),
        ("overide: {allow_groups: [sre]}", False),
    ],
)
def test_guards_files_fit_both_or_neither(lines: str, sound: bool, tmp_path: Any) -> None:
    """guards.yaml has a schema of its own."""
    text = f"apiVersion: brctl.dev/v1\nkind: Guards\n{lines}\n"
    assert (problems(validator(guards_schema()), text.encode()) == []) is sound
    path = tmp_path / "guards.yaml"
    path.write_text(text)
    if sound:
        load_guards([path])
    else:
        with pytest.raises(ConfigError):
            load_guards([path])
