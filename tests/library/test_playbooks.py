"""A playbook with a mistake is refused with file, line and what was probably meant."""

from pathlib import Path

import pytest

from brctl.library import strict_yaml
from brctl.library.guards import load_guards
from brctl.library.playbooks import load_playbook, load_playbooks, pick_playbook, read_playbook
from brctl.library.shipped import shipped_dir
from brctl.model.errors import ConfigError, UsageError
from brctl.model.runs.playbook import OnFailure, Playbook, Safety

GOOD = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: demo, title: Demo, risk: medium}
inputs:
  suspects: {type: nodeset, required: true}
  job: {type: job, required: true}
guards:
  - blast_radius: {max_nodes: 3, window: 6h}
  - lock: {keys: [job, suspects]}
approval:
  gate_before: stop
  policy:
    - {when: len(inputs.suspects) <= 4, need: one}
defaults: {timeout: 1m, retry: {times: 2, only: [transport]}}
steps:
  - id: cordon
    uses: node.cordon
    with: {nodes: $(inputs.suspects), reason: "for $(run.id)"}
    safety: reversible
    undo: auto
  - id: reserve
    uses: standby.acquire
    with: {count: $(len(inputs.suspects))}
    safety: reversible
    undo: auto
  - id: stop
    uses: job.stop
    with: {job: $(inputs.job)}
    safety: destructive
  - id: swap
    uses: job.replace_nodes
    with: {job: $(inputs.job), out: $(inputs.suspects), in: $(steps.reserve.out.nodes)}
    safety: reversible
    undo: auto
"""


def read(text: str) -> Playbook:
    return read_playbook(text.encode(), "my.yaml")


def test_a_sound_playbook_is_read_whole() -> None:
    """Defaults reach every step, except that a destructive one is never retried by default."""
    playbook = read(GOOD)
    assert [step.safety for step in playbook.steps[1:3]] == [Safety.REVERSIBLE, Safety.DESTRUCTIVE]
    assert [step.retry.times for step in playbook.steps] == [2, 2, 0, 2]
    assert playbook.steps[0].timeout_s == 60
    assert playbook.guards[0].origin == "my.yaml:8"


MISTAKES = [
    (
        "$(inputs.suspects), reason",
        "$(inputs.suspect), reason",
        "my.yaml:18: `inputs.suspect`: no such input; did you mean 'suspects'?",
    ),
    (
        "gate_before: stop",
        "gate_before: swap",
        "my.yaml:26: step stop is destructive but comes before the approval gate `swap`",
    ),
    ("gate_before: stop", "gate_before: halt", "my.yaml:11: `gate_before`: no step 'halt'"),
    (
        "node.cordon",
        "node.cordn",
        "my.yaml:17: unknown verb 'node.cordn'; did you mean 'node.cordon'?",
    ),
    ("uses: node.cordon", "uses: ansible.playbok", "did you mean 'ansible.playbook'"),
    (
        "    undo: auto\n  - id: reserve",
        "  - id: reserve",
        "step cordon is reversible, so it needs `undo`",
    ),
    ("steps.reserve.out.nodes", "steps.swap.out.nodes", "no earlier step 'swap'"),
    (
        "steps.reserve.out.nodes",
        "steps.reserve.out.node",
        "step reserve gives no 'node'; did you mean 'nodes'?",
    ),
    ("steps.reserve.out.nodes", "steps.reserve.nodes", "write steps.reserve.out.NAME"),
    ("safety: destructive", "safety: read", "my.yaml:29: step stop: job.stop is destructive"),
    ("safety: destructive", "safety: safe", "my.yaml:29: 'safety': unknown 'safe'"),
    ("with: {count:", "with: {counts:", "standby.acquire takes no 'counts'; did you mean 'count'?"),
    ("with: {job: $(inputs.job)}\n    safety: d", "safety: d", "job.stop needs `with.job`"),
    ("when: len(inputs.suspects) <= 4", "when: len(inputs.suspects) =< 4", "my.yaml:13: "),
    ("when: len(inputs.suspects) <= 4", 'when: "$(inputs.job)"', "write it without `$(...)`"),
    (
        "    undo: auto\n  - id: reserve",
        "    undo: auto\n    joined_before: stop\n  - id: reserve",
        "step cordon runs beside others, so it needs `safety: read` and `on_failure: continue`",
    ),
    (
        "    undo: auto\n  - id: reserve",
        "    undo: auto\n    joined_before: halt\n  - id: reserve",
        "no later step 'halt'",
    ),
    (
        "standby.acquire\n",
        "standby.acquire\n    joined_before: end\n",
        "`steps.reserve.out.nodes`: no earlier step 'reserve'",
    ),
    ("id: reserve", "id: cordon", "my.yaml:21: step id 'cordon' is used twice"),
    (
        "blast_radius:",
        "blast_radios:",
        "my.yaml:8: unknown guard 'blast_radios'; did you mean 'blast_radius'?",
    ),
    ("blast_radius:", "freeze:", "my.yaml:8: unknown key 'max_nodes' in guards[0].freeze"),
    ("max_nodes: 3", "max_nodes: many", "my.yaml:8: 'max_nodes' must be a number, not text"),
    ("max_nodes", "max_node", "my.yaml:8: unknown key 'max_node'"),
    ("window: 6h", "window: 6 hours", "my.yaml:8: 'window'"),
    ("type: job", "type: jobs", "my.yaml:6: 'type': unknown 'jobs'; did you mean 'job'?"),
    ("only: [transport]", "only: [network]", "no error class 'network'"),
    ("timeout: 1m", "timeout: 1 minute", "'timeout'"),
    ("risk: medium", "risk: mild", "'risk': unknown 'mild'"),
    ("steps:\n", "step:\n", "my.yaml:15: unknown key 'step'; did you mean 'steps'?"),
    (
        "    uses: job.stop",
        "    usess: job.stop",
        "unknown key 'usess' in steps[2]; did you mean 'uses'?",
    ),
    ("metadata:", "for_each: {node: $(inputs.suspect)}\nmetadata:", "did you mean 'suspects'"),
    ("metadata:", "for_each: {node: $(steps.stop.out.x)}\nmetadata:", "no earlier step 'stop'"),
    ("metadata:", "for_each: {batch: 2}\nmetadata:", "`node` names the nodes"),
    ("metadata:", "for_each: {node: n1, batch: 0}\nmetadata:", "'batch' is a number of nodes"),
    ("metadata:", "for_each: {node: n1, max_failed: 120%}\nmetadata:", "0% to 100%, not '120%'"),
    ("$(run.id)", "$(node)", "`node`: no such name"),
    ("$(run.id)", "$(verdicts[node].id)", "no such name"),
    (
        "    uses: job.stop\n    with: {job: $(inputs.job)}",
        "    run: echo $(inputs.job)",
        "my.yaml:27: step stop: `run` is never expanded",
    ),
    ("    uses: job.stop", "    run: echo\n    uses: job.stop", "`uses` or `run`, not both"),
    ("    uses: job.stop", "    run: echo", "a script takes no 'job'"),
    ("    uses: job.stop", "    uses: job.stop\n    env: {A: b}", "'env' needs `run`"),
    (
        "    uses: job.stop\n    with: {job: $(inputs.job)}",
        "    run: echo\n    env: {A-B: c}",
        "'A-B' is no name of a variable",
    ),
    (
        "    uses: job.stop\n    with: {job: $(inputs.job)}",
        "    run: echo\n    env: {A: $(inputs.jobs)}",
        "did you mean 'job'",
    ),
    (
        "    uses: job.stop\n    with: {job: $(inputs.job)}",
        "    run: echo\n    where: nodes",
        "`where: nodes` needs `with: {nodes: ...}`",
    ),
    (
        "    uses: job.stop\n    with: {job: $(inputs.job)}",
        "    run: echo\n    expect: {exit: [999]}",
        "statuses from 0 to 255",
    ),
    (
        "approval:\n  gate_before: stop\n  policy:\n"
        "    - {when: len(inputs.suspects) <= 4, need: one}\n",
        "",
        "step stop is destructive and there is no `approval` gate",
    ),
    ('reason: "for $(run.id)"', 'reason: "for $(run.id"', "never closed"),
    ("need: one", "need: two people", "'need': unknown 'two people'"),
    ("\n  suspects:", "\n\tsuspects:", "a tab cannot indent YAML"),
    ("risk: medium", "risk: !!python/name:os.system x", "tag"),
    (
        "keys: [job, suspects]",
        "keys: [job, suspect]",
        "my.yaml:9: lock: no input 'suspect' of type",
    ),
    ("keys: [job, suspects]", "keys: job_name", "my.yaml:9: lock: no input 'job_name'"),
    (
        "type: job, required: true",
        "type: int, default: many",
        "my.yaml:6: 'default': 'many' is not",
    ),
    ("type: job, required: true", "type: int, default: 9, max: 3", "'default': 9 is more than 3"),
    ("timeout: 1m", "timeout: 0s", "my.yaml:14: 'timeout' must be longer than nothing"),
    ("max_nodes: 3", "max_nodes: -3", "my.yaml:8: 'max_nodes' must be at least 0, not -3"),
    ("$(len(", "$(length(", "the only function is len()"),
    ("$(len(inputs.suspects))", "${{ inputs.n }}", "my.yaml:23: `{{` breaks YAML; a value"),
    ('"for $(run.id)"', "{{ run.id }}", "my.yaml:18: `{{` breaks YAML"),
]


@pytest.mark.parametrize(("old", "new", "expected"), MISTAKES)
def test_a_mistake_is_named_with_its_place(old: str, new: str, expected: str) -> None:
    """One sentence per mistake, and the file is refused as a whole."""
    assert old in GOOD
    with pytest.raises(ConfigError) as caught:
        read(GOOD.replace(old, new, 1))
    assert expected in str(caught.value)
    assert str(caught.value).startswith("my.yaml:")


def test_all_mistakes_are_reported_at_once() -> None:
    """Nobody should have to fix a file one error at a time."""
    text = GOOD.replace("inputs.suspects), r", "inputs.suspect), r")
    text = text.replace("steps.reserve.out.nodes", "steps.x.out.y")
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert len(str(caught.value).splitlines()) == 2
    text = GOOD.replace("type: job,", "type: jobs,").replace("safety: destructive", "safety: none")
    text = text.replace("max_nodes", "max_node").replace("need: one", "need: five")
    with pytest.raises(ConfigError) as caught:
        read(text)
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["6", "8", "13", "29"]


def test_shipped_playbooks_are_sound_and_found_by_name() -> None:
    """Everything that ships validates, and a slip of the finger finds its neighbour."""
    found = load_playbooks([shipped_dir("playbooks")])
    assert {"swap-and-resume", "cordon", "restart-in-place", "uncordon"} <= set(found)
    with pytest.raises(UsageError, match="did you mean 'swap-and-resume'"):
        pick_playbook([shipped_dir("playbooks")], "swap-and-resum")


def test_no_shipped_playbook_leaves_a_job_stopped_for_a_waiting_rank_order() -> None:
    """The order is a nicety: a damaged wish or a lock that is held costs only it."""
    found = load_playbooks([shipped_dir("playbooks")]).values()
    taking = [step for one in found for step in one.steps if step.verb == "job.take_order"]
    assert len(taking) == 5
    assert {step.on_failure for step in taking} == {OnFailure.CONTINUE}


def test_a_sites_playbook_replaces_the_shipped_one(tmp_path: Path) -> None:
    """The later folder wins by name."""
    (tmp_path / "x.yaml").write_text(GOOD.replace("name: demo", "name: cordon"))
    found = load_playbooks([shipped_dir("playbooks"), tmp_path])
    assert found["cordon"].title == "Demo"


def test_guard_files_are_read_line_by_line_and_loose_modes_are_said(tmp_path: Path) -> None:
    """Limits keep their place; a file that others may write protects nobody."""
    path = tmp_path / "guards.yaml"
    path.write_text(
        "apiVersion: brctl.dev/v1\nkind: Guards\n"
        "blast_radius:\n  - {max_nodes: 2}\n  - {max_nodes: 8, playbook: group-evict}\n"
        "min_healthy: {percent: 95}\napproval: [{when: job.gpus > 512, need: one}]\n"
    )
    path.chmod(0o666)
    site = load_guards([path])
    assert [spec.origin for spec in site.guards] == [f"{path}:4", f"{path}:5", f"{path}:6"]
    assert site.approval[0][0].when == "job.gpus > 512"
    assert "others may write" in site.warnings[0]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("blast_radius: {nodes: 2}", "unknown key 'nodes'"),
        ("blast_radios: {max_nodes: 2}", "did you mean 'blast_radius'?"),
        ("approval: [{when: inputs.x > 1, need: one}]", "`inputs.x`: no such name"),
        ("override: {groups: [sre]}", "unknown key 'groups'"),
        ("approval: [{need: one, roles: sre}]", "did you mean 'role'?"),
    ],
)
def test_a_limit_that_cannot_be_read_is_an_error(line: str, expected: str, tmp_path: Path) -> None:
    """A guards file is never half believed."""
    path = tmp_path / "guards.yaml"
    path.write_text(f"apiVersion: brctl.dev/v1\nkind: Guards\n{line}\n")
    with pytest.raises(ConfigError) as caught:
        load_guards([path])
    assert expected in str(caught.value)


HEAD = """\
apiVersion: brctl.dev/v1
kind: Playbok
metadata: {name: X, titel: y, risk: huge}
match: {classes: [gpu-nothing]}
defaults: {timeuot: 1m}
inputs: {a: {type: nodset}}
steps:
  - {id: a, uses: node.cordon}
"""


def test_a_mistake_in_the_head_hides_no_other() -> None:
    """Whoever writes a playbook at night sees them all, and not one a try."""
    with pytest.raises(ConfigError) as caught:
        read_playbook(HEAD.encode(), "p.yaml")
    found = str(caught.value).splitlines()
    for line, part in (
        (2, "kind must be"), (3, "'titel'"), (3, "'name'"), (3, "'title'"), (3, "'huge'"),
        (4, "gpu-nothing"), (5, "'timeuot'"), (6, "'nodset'"), (8, "'safety'"),
    ):  # fmt: skip
        assert any(text.startswith(f"p.yaml:{line}:") and part in text for text in found), part


def test_libyaml_reads_what_came_with_brctl_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """All are read to find one: a seventh of a second of each fix, with the careful parser."""

    def careful(_: object) -> None:
        raise AssertionError("the careful parser was asked")

    monkeypatch.setattr(strict_yaml, "_CoreLoader", careful)
    found = load_playbooks([shipped_dir("playbooks")])
    copy = tmp_path / "swap-and-resume.yaml"
    copy.write_bytes(found["swap-and-resume"].text)
    with pytest.raises(AssertionError, match="the careful parser"):
        load_playbook(copy)
