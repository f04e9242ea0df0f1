"""Learn what is normal: measure nodes that are well, and keep it in a file."""

from dataclasses import dataclass
from pathlib import Path

from brctl.engine.controller.selection import select_nodes
from brctl.engine.controller.wiring import open_controller
from brctl.engine.sweeps.run_checks import Question, sweep_nodes
from brctl.evidence.baseline import learn_baseline
from brctl.library.baselines import write_baseline
from brctl.library.config import BASELINE_NAME, Settings
from brctl.model.command import Outcome
from brctl.model.sweeps.sweep import Health, NodeHealth


@dataclass(frozen=True, slots=True)
class Learned:
    """A baseline that was written.

    Attributes:
        nodes: How many nodes it was learned from.
        left_out: Nodes that something is wrong with, or that did not answer.
    """

    path: Path
    nodes: int
    readings: int
    left_out: tuple[str, ...]


async def learn(
    settings: Settings,
    include: str | None,
    exclude: str | None,
    path: Path | None = None,
    level: int = 1,
) -> Learned:
    """Measure nodes and write what is normal for them; beside the configuration by default."""
    folder = settings.config_file.parent if settings.config_file else Path()
    out = path or folder / BASELINE_NAME
    async with open_controller(settings) as controller:
        names = await select_nodes(controller, include, exclude)
        swept = await sweep_nodes(controller, names, Question(level=level))
        models = {
            n.name: n.labels.get("gpu_model", "") for n in controller.inventory.nodes.values()
        }
        moment = controller.now()
    well = [node.report for node in swept.nodes if _is_well(node)]
    baseline = learn_baseline(well, moment, lambda node: models[node])
    write_baseline(out, baseline)
    left_out = sorted(set(names) - {report.node for report in well})
    return Learned(out, len(well), len(baseline.entries), tuple(left_out))


def _is_well(node: NodeHealth) -> bool:
    """What a node lacks leaves gaps in what is learned; one that is silent teaches nothing."""
    return node.health is not Health.CRITICAL and node.report.outcome is Outcome.ANSWERED
