"""One training job: where its ranks run, which parallel groups they form, where it saves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import PurePosixPath

from brctl.model.jobs.checkpoint_layouts import checkpoint_names
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.log_progress import LogProgress

_ROOT = PurePosixPath("/")
CODE_DIR_VARIABLE, CODE_VERSION_VARIABLE = "BRCTL_CODE_DIR", "BRCTL_CODE_VERSION"
SLOT_DIR_VARIABLE = "BRCTL_SLOT_DIR"


@dataclass(frozen=True, slots=True)
class Job:
    """What job.yaml declares, with the nodes the backend says it runs on now.

    Attributes:
        nodes: Node names in rank order.
        ranks_per_node: Ranks, and so GPUs, each node carries.
        axes: Parallel sizes, fastest varying first, `(("tp", 2), ("pp", 2), ("dp", 2))`.
        launch: Command of one rank; RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR, MASTER_PORT and
            BRCTL_CHECKPOINT arrive as environment.
        environment: Further environment of every rank.
        workdir: Directory the ranks start in; None for the code's own, or the root without `code`.
        checkpoint_dir: Where checkpoints appear, a directory or file each.
        checkpoint_layout: How they are laid out, a row of `CHECKPOINT_NAMES`.
        checkpoint_pattern: Their names where these are not the layout's, `ckpt_{step}.pt`.
        slot_directory: Where its ranks keep each step in the memory of their nodes, if they do.
        log_dir: One log file a rank: `rank-00003.log`.
        progress_dir: One progress file a rank: `rank-00003.json`, and `steps.ndjson` by rank 0.
        log_progress: Where steps are read instead, in a job that writes no such files.
        warm: Modules a process imports beside torch when it is parked for a rank.
        sbatch: Further options of the submission where Slurm schedules; "" for a bare flag.
        stall_after_s: No new step for this long counts as a stall.
        code: Where its releases lie and which one its ranks start from; None when nobody says.
        containers: Of each node, the container its ranks run in, as in their cgroup's name; empty
            where brctl started them, "" where there is none now.
    """

    name: str
    nodes: tuple[str, ...]
    ranks_per_node: int
    axes: tuple[tuple[str, int], ...]
    launch: tuple[str, ...]
    checkpoint_dir: PurePosixPath
    log_dir: PurePosixPath
    progress_dir: PurePosixPath
    environment: Mapping[str, str] = field(default_factory=dict)
    sbatch: Mapping[str, str] = field(default_factory=dict)
    workdir: PurePosixPath | None = None
    checkpoint_layout: str = "torch-dcp"
    checkpoint_pattern: str = ""
    slot_directory: PurePosixPath | None = None
    warm: tuple[str, ...] = ()
    stall_after_s: float = 60.0
    master_port: int = 29500
    origin: str = ""
    code: JobCode | None = None
    log_progress: LogProgress | None = None
    containers: tuple[str, ...] = ()

    @property
    def rank_workdir(self) -> PurePosixPath:
        """Where the ranks start."""
        if self.workdir is not None:
            return self.workdir
        return self.code.directory if self.code else _ROOT

    @property
    def rank_environment(self) -> dict[str, str]:
        """What every rank finds in its environment, besides its place among the others."""
        if self.code is None:
            return dict(self.environment)
        where = {
            CODE_DIR_VARIABLE: str(self.code.directory),
            CODE_VERSION_VARIABLE: self.code.version,
        }
        return {**self.environment, **where}

    @property
    def checkpoint_names(self) -> str:
        """The regular expression that the names of its checkpoints fit."""
        return checkpoint_names(self.checkpoint_layout, self.checkpoint_pattern)

    @property
    def model_parallel(self) -> int:
        """Ranks that hold one copy of the model together."""
        return prod(size for axis, size in self.axes if axis in ("tp", "pp"))

    @property
    def world_size(self) -> int:
        return len(self.nodes) * self.ranks_per_node

    def node_of(self, rank: int) -> str:
        """The node that carries a rank."""
        return self.nodes[rank // self.ranks_per_node]

    def container_on(self, node: str) -> str:
        """The container of a node's ranks; "" where there is none."""
        return dict(zip(self.nodes, self.containers, strict=False)).get(node, "")

    def ranks_on(self, node: str) -> tuple[int, ...]:
        """The ranks a node carries; empty when the job is not on it."""
        if node not in self.nodes:
            return ()
        first = self.nodes.index(node) * self.ranks_per_node
        return tuple(range(first, first + self.ranks_per_node))

    def coordinates(self, rank: int) -> dict[str, int]:
        """A rank's index along every parallel axis.

        Examples:
            >>> job = example_job()
            >>> job.coordinates(5)
            {'tp': 1, 'pp': 0, 'dp': 1}
        """
        position: dict[str, int] = {}
        for axis, size in self.axes:
            rank, position[axis] = divmod(rank, size)
        return position

    def groups(self, axis: str) -> tuple[tuple[int, ...], ...]:
        """The ranks that differ only along one axis: the process groups of that axis."""
        members: dict[tuple[tuple[str, int], ...], list[int]] = {}
        for rank in range(self.world_size):
            rest = tuple((a, i) for a, i in self.coordinates(rank).items() if a != axis)
            members.setdefault(rest, []).append(rank)
        return tuple(tuple(ranks) for ranks in members.values())


def example_job() -> Job:
    """Eight ranks on eight nodes, tp=2 pp=2 dp=2; for doctests and documentation."""
    return Job(
        name="example",
        nodes=tuple(f"n{i}" for i in range(1, 9)),
        ranks_per_node=1,
        axes=(("tp", 2), ("pp", 2), ("dp", 2)),
        launch=("python", "train.py"),
        checkpoint_dir=PurePosixPath("/ckpt"),
        log_dir=PurePosixPath("/logs"),
        progress_dir=PurePosixPath("/progress"),
    )
