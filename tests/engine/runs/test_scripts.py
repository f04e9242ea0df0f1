"""`run:` steps and idempotency keys: values arrive as environment, a key acts once."""

import asyncio
import json
import time
from datetime import timedelta
from pathlib import Path

import pytest

from brctl.actions.child import OUTPUT_LIMIT_BYTES
from brctl.engine.runs.plan import prepare
from brctl.engine.runs.read_run import read_run
from brctl.engine.runs.remediate import answer, create_run
from brctl.engine.runs.run_files import RunRequest, save_request
from brctl.journal.keys import Entry, Keys
from brctl.journal.store import read_journal
from brctl.library.playbooks import read_playbook
from brctl.model.errors import LockedError
from brctl.model.exit_codes import ExitCode
from brctl.model.runs.event import EventType
from brctl.model.runs.playbook import Json
from brctl.playbook.steps import StepState
from tests.fakes.run_context import NOON, FakeContext, fake_context
from tests.fakes.run_here import carry
from tests.timeouts import TIMEOUT_S

HEAD = """\
apiVersion: brctl.dev/v1
kind: Playbook
metadata: {name: script, title: Run a script, risk: low}
inputs:
  nodes: {type: nodeset, default: n1}
  word: {type: string, default: hello}
defaults: {on_failure: stop}
steps:
"""
SITE = """\
  - id: site
    run: |
      echo "word=$WORD run=$BRCTL_RUN"
    env: {WORD: $(inputs.word)}
    safety: read
"""


def new_run(context: FakeContext, steps: str, **values: Json) -> Path:
    playbook = read_playbook((HEAD + steps).encode(), "script.yaml")
    prepared = asyncio.run(prepare(context, playbook, None, values))
    return create_run(context, prepared, RunRequest("ann", yes=True))


def start(context: FakeContext, steps: str, **values: Json) -> tuple[Path, ExitCode]:
    run_dir = new_run(context, steps, **values)
    return run_dir, carry(context, run_dir)


def output(run_dir: Path, name: str = "site") -> str:
    return (run_dir / "stdout" / f"{name}.log").read_text()


@pytest.mark.parametrize(
    "word", ["hello", "; touch /tmp/brctl-pwned #", "$(touch x) `touch y`", "'\"\\ \n two", "ü✓"]
)
def test_a_value_is_data_whatever_it_says(word: str, tmp_path: Path) -> None:
    """It arrives as one environment variable, byte for byte, and nothing of it is run."""
    run_dir, code = start(fake_context(tmp_path), SITE, word=word)
    assert code is ExitCode.OK
    assert output(run_dir) == f"word={word} run=R-0001\n"
    assert read_run(run_dir).record.steps["site"].out == {"exit_status": 0}
    assert oct((run_dir / "stdout" / "site.log").stat().st_mode & 0o777) == "0o600"


def test_secrets_of_our_own_environment_stay_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script sees PATH, HOME and what its playbook names."""
    monkeypatch.setenv("WANDB_API_KEY", "s3cret")
    run_dir, _ = start(fake_context(tmp_path), "  - {id: site, run: env, safety: read}\n")
    names = {line.partition("=")[0] for line in output(run_dir).splitlines()}
    assert {"PATH", "BRCTL_RUN", "BRCTL_STEP"} <= names
    assert "WANDB_API_KEY" not in names


@pytest.mark.parametrize(
    ("run", "expect", "code"),
    [
        ("exit 3", "[0]", ExitCode.ROLLED_BACK),
        ("exit 3", "[0, 3]", ExitCode.OK),
        ("kill -9 $$", "[0]", ExitCode.ROLLED_BACK),
    ],
)
def test_the_exit_status_decides(run: str, expect: str, code: ExitCode, tmp_path: Path) -> None:
    """Statuses the playbook expects are success; the last words of the script are the reason."""
    steps = (
        f"  - {{id: site, run: 'echo because; {run}', safety: read, expect: {{exit: {expect}}}}}\n"
    )
    run_dir, ended = start(fake_context(tmp_path), steps)
    assert ended is code
    if code is ExitCode.ROLLED_BACK:
        assert "because (stdout/site.log)" in read_run(run_dir).record.failed_error


def test_output_is_bounded_and_a_flood_does_not_stop_the_script(tmp_path: Path) -> None:
    """Three times the limit is written, the limit is kept."""
    flood = f"head -c {3 * OUTPUT_LIMIT_BYTES} /dev/zero | tr '\\0' x"
    steps = f"  - id: site\n    run: {flood}\n    safety: read\n"
    run_dir, code = start(fake_context(tmp_path), steps)
    assert code is ExitCode.OK
    assert len(output(run_dir)) == OUTPUT_LIMIT_BYTES


def test_a_script_out_of_time_is_killed_with_its_children(tmp_path: Path) -> None:
    """Nothing of it runs on after the step has failed."""
    steps = (
        "  - {id: site, safety: read, timeout: 6s,"
        f" run: 'sleep 601.25 & echo $! >{tmp_path}/pid; wait'}}\n"
    )
    run_dir, code = start(fake_context(tmp_path), steps)
    assert code is ExitCode.ROLLED_BACK
    assert "not done within 6 s" in read_run(run_dir).record.failed_error
    child = int((tmp_path / "pid").read_text())
    stat = Path(f"/proc/{child}/stat")
    limit_s = time.monotonic() + TIMEOUT_S
    while time.monotonic() < limit_s:
        if not stat.exists() or " Z " in stat.read_text():
            return
        time.sleep(0.05)
    pytest.fail("the child of the script lives on")


ON_NODES = """\
  - id: site
    run: echo "on $NODES"; test "$WORD" = hello
    where: nodes
    with: {nodes: $(inputs.nodes)}
    env: {WORD: $(inputs.word), NODES: $(inputs.nodes)}
    safety: read
"""


def test_a_script_runs_on_nodes_and_every_one_counts(tmp_path: Path) -> None:
    """Output of each under its name; a node that gives no status is no success."""
    context = fake_context(tmp_path)
    run_dir, code = start(context, ON_NODES, nodes="n1,n2")
    assert code is ExitCode.OK
    assert output(run_dir) == "".join(
        f"--- {node}: answered, exit status 0\non n[1-2]\n" for node in ("n1", "n2")
    )
    run_dir, code = start(context, ON_NODES, nodes="n[1-3]")
    assert code is ExitCode.ROLLED_BACK
    assert "no exit status from n3: no answer" in read_run(run_dir).record.failed_error
    run_dir, code = start(context, ON_NODES, word="other")
    assert "exit status 1 on n1" in read_run(run_dir).record.failed_error


def cut_off(run_dir: Path, steps: int) -> None:
    """Leave the journal as a controller does that died inside its last step."""
    path = run_dir / "events.ndjson"
    lines = path.read_bytes().splitlines(keepends=True)
    kinds = [json.loads(line)["type"] for line in lines]
    intents = [number for number, kind in enumerate(kinds) if kind == EventType.STEP_INTENT]
    path.write_bytes(b"".join(lines[: intents[steps - 1] + 1]))


COUNT = """\
  - id: site
    run: echo once >>"$FILE"
    env: {{FILE: {file}}}
    safety: disruptive
"""


def test_a_script_in_doubt_is_not_run_again_without_asking(tmp_path: Path) -> None:
    """It leaves no mark, so a person decides; reading scripts just run again."""
    context, file = fake_context(tmp_path), tmp_path / "count"
    run_dir, code = start(context, COUNT.format(file=file))
    assert code is ExitCode.OK
    cut_off(run_dir, 1)
    assert carry(context, run_dir) is ExitCode.WAITING
    assert file.read_text() == "once\n"
    answer(context, run_dir, "ann", yes=True, typed="run site again")
    assert carry(context, run_dir) is ExitCode.OK
    assert file.read_text() == "once\nonce\n"
    run_dir, _ = start(context, SITE)
    cut_off(run_dir, 1)
    assert carry(context, run_dir) is ExitCode.OK


KEYED = (
    COUNT.replace("disruptive", "reversible\n    undo: {{uses: incident.note, with: {{text: x}}}}")
    + '    idempotency_key: "rma/$(inputs.word)"\n'
)


def test_a_second_run_with_the_same_key_finds_the_first_result(tmp_path: Path) -> None:
    """It does not act again and changes nothing; another key acts."""
    context, file = fake_context(tmp_path), tmp_path / "count"
    first, _ = start(context, KEYED.format(file=file))
    second, code = start(context, KEYED.format(file=file))
    assert code is ExitCode.OK
    assert file.read_text() == "once\n"
    step = read_run(second).record.steps["site"]
    assert (step.changed, step.out) == (False, read_run(first).record.steps["site"].out)
    assert step.say.endswith("(already, by R-0001)")
    start(context, KEYED.format(file=file), word="other")
    assert file.read_text() == "once\nonce\n"


def test_a_key_whose_act_was_undone_or_failed_is_free_again(tmp_path: Path) -> None:
    """The next run acts."""
    context, file = fake_context(tmp_path), tmp_path / "count"
    run_dir, _ = start(context, KEYED.format(file=file))
    save_request(run_dir, RunRequest("ann", undo=True))
    assert carry(context, run_dir) is ExitCode.ROLLED_BACK
    failing = KEYED.format(file=file).replace('"$FILE"', '"$FILE"; exit 1')
    assert start(context, failing)[1] is not ExitCode.OK
    assert start(context, KEYED.format(file=file))[1] is ExitCode.OK
    assert file.read_text() == "once\n" * 3


def test_a_run_that_died_with_the_result_under_its_key_needs_no_person(tmp_path: Path) -> None:
    """The key tells what the journal does not."""
    context, file = fake_context(tmp_path), tmp_path / "count"
    run_dir, _ = start(context, KEYED.format(file=file))
    cut_off(run_dir, 1)
    assert carry(context, run_dir) is ExitCode.OK
    assert file.read_text() == "once\n"
    assert read_run(run_dir).record.steps["site"].state is StepState.DONE
    settled = [e for e in read_journal(run_dir).events if e.type is EventType.STEP_SETTLED]
    assert "known under rma/hello" in str(settled[0].fields["say"])


def test_two_runs_never_act_under_one_key_at_the_same_time(tmp_path: Path) -> None:
    """The second is told who is at it; after a quarter of an hour the first counts as dead."""
    keys = Keys(tmp_path)
    assert keys.begin("k", "R-0001", NOON) is None
    assert keys.begin("k", "R-0001", NOON) is None
    with pytest.raises(LockedError, match="R-0001 began the same"):
        keys.begin("k", "R-0002", NOON + timedelta(minutes=14))
    assert keys.begin("k", "R-0002", NOON + timedelta(minutes=16)) is None
    keys.finish(Entry("k", "R-0002", NOON, done=True, out={"a": 1}, say="did"))
    found = keys.begin("k", "R-0003", NOON + timedelta(days=29))
    assert found is not None
    assert (found.run, found.out) == ("R-0002", {"a": 1})
    assert keys.begin("k", "R-0003", NOON + timedelta(days=31)) is None
