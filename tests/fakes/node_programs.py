"""What programs do on the nodes of a WorldFile: said to be fakes, and nothing real is started."""

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from brctl.model.command import CommandResult, Outcome
from brctl.model.jobs.rank_dumps import RankDumps
from brctl.model.localisation import GroupResult
from brctl.model.sweeps.burnin import Burnin, BurninState, NodeBurnin
from brctl.model.sweeps.report import Measurement
from tests.fakes.world_file import WorldFile

GOOD_GB_PER_S = 100.0


def boot_id(node: str, boots: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, f"{node}/{boots}"))


def run_program(world: WorldFile, node: str, argv: Sequence[str], *, root: bool) -> CommandResult:
    """The programs that verbs run, on a node that is not there."""
    data = world.read()
    if node in data["dead"]:
        return CommandResult(node, Outcome.UNREACHABLE, None, b"", b"", 0.0, "no answer")
    words, boots = tuple(argv), data.get("boots", {}).get(node, 0)
    if words == ("cat", "/proc/sys/kernel/random/boot_id"):
        return _answer(node, boot_id(node, boots))
    assert root, f"{words} needs root"
    if words == ("systemctl", "reboot"):
        with world.change() as data:
            data.setdefault("boots", {})[node] = boots + (node not in data.get("stuck", []))
            data["effects"].append(f"reboot {node}")
        return CommandResult(node, Outcome.DIED, None, b"", b"", 0.0, "connection lost")
    if words[1:3] == ("-I", "-c"):
        return _mark_log(world, node, words[4:])
    assert words[:2] == ("nvidia-smi", "--gpu-reset"), words
    if node in data.get("unresettable", []):
        return _answer(node, "GPU 00000000:18:00.0 is currently in use.\n", 19)
    with world.change() as data:
        data["effects"].append(f"reset gpus of {node}")
    return _answer(node, "All done.\n")


def _mark_log(world: WorldFile, node: str, words: tuple[str, ...]) -> CommandResult:
    with world.change() as data:
        if node in data.get("sealed_logs", []):
            return _answer(node, "", 1)
        data.setdefault("kernel_logs", {}).setdefault(node, []).append(list(words))
    return _answer(node, "")


def _answer(node: str, text: str, status: int = 0) -> CommandResult:
    return CommandResult(node, Outcome.ANSWERED, status, text.encode(), b"", 0.0)


def gpu_rows(data: dict[str, Any], node: str, check: str) -> list[Measurement]:
    """Eight GPUs; the first is the one that is held or lost, and what is lost is not counted."""
    held, lost = data.get("held", {}).get(node, 0), node in data.get("lost_gpus", [])
    if check == "gpu.processes":
        observed = range(int(lost), 8)
        return [Measurement("gpu.processes.count", f"gpu:{i}", held * (i == 0)) for i in observed]
    return [
        Measurement("gpu.devices.nvml_count", "node", 7 if lost else 8),
        Measurement("gpu.device.lost", "gpu:0", lost),
        Measurement("gpu.device.lost", "gpu:1", False),
    ]


def burn_in(world: WorldFile, nodes: Sequence[str], level: int, duration_s: float) -> Burnin:
    """Sick nodes fail, dead ones do not finish."""
    data = world.read()

    def one(node: str) -> NodeBurnin:
        if node in data["dead"]:
            return NodeBurnin(node, BurninState.UNFINISHED, reason="no answer")
        if node in data["sick"]:
            return NodeBurnin(node, BurninState.FAILED, 1, "a GPU is lost")
        return NodeBurnin(node, BurninState.PASSED, 3)

    from tests.fakes.run_context import NOON

    return Burnin("B-1", level, (), NOON, duration_s, duration_s, 1, tuple(map(one, nodes)))


def test_groups(
    world: WorldFile, groups: Sequence[tuple[str, ...]], reps: int
) -> tuple[GroupResult, ...]:
    """Sick nodes give wrong results, slow ones a third of the bandwidth, dead ones nothing."""
    data = world.read()

    def one(group: tuple[str, ...]) -> GroupResult:
        if set(group) & set(data["dead"]):
            return GroupResult(reps, None)
        wrong = 1 if set(group) & set(data["sick"]) else 0
        slow = set(group) & set(data.get("slow", []))
        return GroupResult(reps, wrong, GOOD_GB_PER_S / 3 if slow else GOOD_GB_PER_S)

    return tuple(map(one, groups))


test_groups.__test__ = False  # type: ignore[attr-defined]  # a fake, not a test


def dump_ranks(folder: Path, ranks: Sequence[int], dead: Sequence[int]) -> RankDumps:
    (folder / "round-1").mkdir(parents=True, exist_ok=True)
    for rank in ranks:
        (folder / "round-1" / f"rank-{rank:05d}.json").write_text("{}")
    return RankDumps(tuple(ranks), dict.fromkeys(dead, "no answer"), ())
