"""A fleet of 64 whose nodes are programs: healthy, one sick, and three that somebody owns."""

import contextlib
import json
import stat
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import asyncssh

from brctl.engine.incidents import verdict_store
from brctl.engine.sweeps import sweep_store
from brctl.library.checks import load_checks
from brctl.library.shipped import shipped_dir
from brctl.model.evidence import Weight
from brctl.model.sweeps.sweep import NodeHealth
from tests.contract.transport_sites import run_sshd

SIZE, JOB_SIZE = 64, 16
OWNED = ("n005", "n010", "n015")
"""Five in a hundred; each carries a rank of the job."""
SICK = "n033"
NODES = tuple(f"n{number:03d}" for number in range(1, SIZE + 1))
SOUND = tuple(node for node in NODES if node not in (*OWNED, SICK))
GOLDEN = Path(__file__).parents[1] / "golden/checks"
PREFERRED = ("healthy", "fine", "right", "quiet", "running", "well", "active", "free")
_AGAINST = (Weight.HINTS, Weight.CONVICTS)
NOW_WORD = "1234567890.125"
"""In the place of the node's clock."""

CONFIG = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
state_dir: state
ssh: {SSH}
contexts: {prod: {inventory: [{file: own.yaml}], jobs: [job.yaml]}}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: n[001-016]
launch: [train]
checkpoint: {directory: /nowhere/ckpt}
logs: /nowhere/logs
progress: /nowhere/progress
"""
# The rank program comes on stdin and asks with JSON in its last line; everything else is a sweep,
# or a file that this node has not.
HEALTHY = """\
#!/bin/sh
name=${0##*/}
case "$*" in
*zlib,json*) cat > /dev/null; exec sed "s/NOW/$(date +%s.%N)/" FOLDER/$name.sweep ;;
"-I -")
    do=$(tail -n 1 | sed -n 's/.*"do": "\\([a-z]*\\)".*/\\1/p')
    [ "$do" != stop ] || sed -i 's/"alive": true/"alive": false/' "FOLDER/$name.status"
    exec cat "FOLDER/$name.$do" ;;
*) cat > /dev/null; exit 1 ;;
esac
"""
ATTACKER = """\
#!/bin/sh
case "$*" in
*zlib,json*) answer=sweep ;;
*) answer=status ;;
esac
exec PYTHON -m tests.hostile.shapes 'SHAPE' NAME FOLDER/NAME.$answer < /dev/null
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """What the commands made of the fleet.

    Attributes:
        nodes: Health of each node and what speaks against it, as the sweep found it.
        named: Whom verdicts suspect, with the verdict.
    """

    nodes: Mapping[str, tuple[str, tuple[str, ...]]]
    named: Mapping[str, str]


@cache
def _golden_rows() -> Mapping[str, Sequence[Sequence[object]]]:
    """For every check of level 1 what a node without a fault measures."""
    return {
        name: _fine(name)
        for name, check in load_checks((shipped_dir("checks"),)).items()
        if check.level == 1 and (GOLDEN / name).is_dir()
    }


def _fine(check: str) -> Sequence[Sequence[object]]:
    for path in sorted((GOLDEN / check).glob("*.json"), key=_preference):
        situation = json.loads(path.read_text())
        sound = situation.get("status", "measured") == "measured" and not situation["against"]
        if sound and not situation.get("gaps"):
            rows: Sequence[Sequence[object]] = situation["measurements"]
            return rows
    raise AssertionError(f"no golden file of a healthy node for {check}")


def _preference(path: Path) -> tuple[bool, str]:
    return path.stem not in PREFERRED, path.stem


def _answer(node: str) -> str:
    """The runner's lines of a healthy node."""
    lines: list[dict[str, object]] = [
        {"type": "hello", "python": "3.9.2", "node": node, "login_s": 0.3}
    ]
    for check, golden in _golden_rows().items():
        rows = [{"name": n, "subject": s, "value": v} for n, s, v in _rows(node, check, golden)]
        stdout = json.dumps({"measurements": rows, "notes": []}).replace(NOW_WORD, "NOW")
        lines.append(
            {"type": "result", "check": check, "exit": 0, "seconds": 0.1, "stdout": stdout,
             "stderr": ""}
        )  # fmt: skip
    lines.append({"type": "end", "count": len(lines) - 1})
    return "".join(json.dumps(line) + "\n" for line in lines)


def _rows(node: str, check: str, golden: Sequence[Sequence[object]]) -> Sequence[Sequence[object]]:
    if check == "host.clock":
        return [["host.clock.unix_s", "", float(NOW_WORD)], ["host.clock.synchronised", "", True]]
    if check == "job.ranks":
        return _ranks(node)
    if check == "gpu.devices" and node == SICK:
        return [*golden, ["gpu.device.lost", "gpu:index-3", True]]
    if check in ("job.cgroup", "job.cpu"):
        return []
    return golden


def _ranks(node: str) -> Sequence[Sequence[object]]:
    rank = NODES.index(node)
    said = {"alive": True, "process_state": "R", "step": 100, "phase": "forward",
            "phase_age_s": 0.1, "progress_age_s": 0.2, "loss_finite": True}  # fmt: skip
    rows = [[f"job.rank.{key}", f"rank:{rank}", value] for key, value in said.items()]
    return rows if rank < JOB_SIZE else []


def write_fleet(
    folder: Path, shapes: Sequence[str], ssh: str = "transport: local", port: int = 22
) -> Path:
    """The configuration of a fleet; without shapes, its owned nodes are healthy like the others."""
    answers = folder / "answers"
    answers.mkdir(parents=True)
    for number, node in enumerate(NODES):
        (answers / f"{node}.sweep").write_text(_answer(node))
        ranks = [{"rank": number, "alive": True, "exit_status": None, "incarnation": "a"}]
        listed = ranks if number < JOB_SIZE else []
        (answers / f"{node}.status").write_text(json.dumps({"ranks": listed}) + "\n")
        gone = [number] if listed else []
        (answers / f"{node}.stop").write_text(json.dumps({"stopped": gone}) + "\n")
        _program(folder / node, HEALTHY.replace("FOLDER", str(answers)))
    for node, shape in zip(OWNED, shapes, strict=False):
        text = ATTACKER.replace("FOLDER", str(answers)).replace("NAME", node)
        _program(folder / node, text.replace("SHAPE", shape).replace("PYTHON", _python()))
    rows = "".join(
        f"  {n}: {{address: 127.0.0.1, port: {port}, python: {folder / n}}}\n" for n in NODES
    )
    own = f"apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n{rows}"
    (folder / "own.yaml").write_text(own)
    (folder / "job.yaml").write_text(JOB)
    (folder / "config.yaml").write_text(CONFIG.replace("SSH", ssh))
    return folder / "config.yaml"


def _python() -> str:
    root = Path(__file__).parents[2]
    return f"env PYTHONPATH={root} {sys.executable}"


def _program(path: Path, text: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def seen(state_dir: Path) -> Seen:
    """What is on disk after the commands."""
    sweep = sweep_store.latest(state_dir)
    assert sweep is not None
    verdicts = [stored.verdict for stored in verdict_store.load_all(state_dir)]
    return Seen(
        {node.node: _judged(node) for node in sweep.nodes},
        {s.node: f"{v.id} {v.fault}" for v in verdicts for s in v.suspects if s.node},
    )


def _judged(node: NodeHealth) -> tuple[str, tuple[str, ...]]:
    against = (f"{e.kind} {e.subject.device}" for e in node.evidence if e.weight in _AGAINST)
    return str(node.health), tuple(sorted(against))


Run = Callable[[Sequence[str]], int]

LOOKS: Sequence[Sequence[str]] = (
    ("sweep", "--lines"),
    ("sweep", "--cron"),
    ("sweep", "-o", "nagios"),
    ("ls",),
    ("report", "fleet"),
    ("dx",),
    ("dx", "-w", "n[001-064]"),
)
QUICK = (LOOKS[2], *LOOKS[-2:])
"""Those that look at nodes; the others of LOOKS tell of such a look."""
COMMANDS: Sequence[Sequence[str]] = (
    *LOOKS,
    ("cordon", "n050", "-m", "fan"),
    ("job", "stop", "demo", "--confirm", "stop"),
)


WORST = 3
"""The worst exit code that is still an answer."""


def may_end(code: int) -> bool:
    """Whether hostile nodes may have a command end so."""
    return 0 <= code <= WORST


def run_command(config: Path, words: Sequence[str], run: Run, patience: str = "20s") -> int:
    """One command over the fleet; its exit code."""
    return run([*words, "--config", str(config), "--no-input", "--timeout", patience])


def wronged(well: Seen, now: Seen) -> list[str]:
    """What the owned nodes made of the others, in sentences."""
    return [
        f"{node} is {now.nodes.get(node)}, and was {well.nodes[node]} in a fleet that nobody owns"
        for node in (*SOUND, SICK)
        if now.nodes.get(node) != well.nodes[node]
    ]


def innocents(now: Seen) -> list[str]:
    """Sound nodes that a verdict suspects, in sentences."""
    return [f"{node} is named by {now.named[node]}" for node in SOUND if node in now.named]


@contextlib.contextmanager
def over_ssh(folder: Path) -> Iterator[tuple[str, int]]:
    """A real SSH server for all nodes: how the configuration says to reach it, and its port."""
    host_key, key = (asyncssh.generate_private_key("ssh-ed25519") for _ in range(2))
    key.write_private_key(str(folder / "id"))
    (folder / "id").chmod(0o600)
    (folder / "authorized").write_bytes(key.export_public_key())
    with run_sshd(folder, host_key, logins_at_once=SIZE) as port:
        public = host_key.export_public_key().decode()
        (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {public}")
        keys = f"identity_file: {folder / 'id'}, known_hosts: {folder / 'known_hosts'}"
        yield (
            f"user: root, {keys}, transport: asyncssh, connect_timeout: 60s, login_timeout: 60s",
            port,
        )
