"""Read job.yaml: where a training job's ranks run, how they are started, where it saves."""

import re
from collections.abc import Iterable
from math import prod
from pathlib import Path, PurePosixPath

from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import Document, load_document
from brctl.library.trusted_files import refuse_untrusted
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import CODE_DIR_VARIABLE, CODE_VERSION_VARIABLE, Job
from brctl.model.nodeset import expand

AXES = ("tp", "pp", "dp", "ep", "cp")
LAYOUTS = ("torch-dcp",)
_KEYS = (
    "name", "nodes", "ranks_per_node", "parallel", "launch", "workdir", "environment",
    "warm", "checkpoint", "logs", "progress", "stall_after", "master_port", "slurm",
    "code",
)  # fmt: skip

# What a site may ask of sbatch. Nodes, tasks, name and output are brctl's own business.
SBATCH_OPTIONS = (
    "partition", "account", "qos", "reservation", "gres", "constraint", "time", "mem",
    "cpus-per-task", "exclusive",
)  # fmt: skip

# The name becomes a file name and a word on a process's environment.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
RELEASE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
"""A release is one directory of `code.releases`; its name stands in paths, tables and journals."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

# What the backend sets for every rank; a file that set them too would be silently overruled.
RESERVED_ENVIRONMENT = frozenset(
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "BRCTL_JOB", "BRCTL_NODE",
     "BRCTL_PROGRESS_DIR", "BRCTL_CHECKPOINT_DIR", "BRCTL_RESUME_FROM", "BRCTL_PARKED",
     CODE_DIR_VARIABLE, CODE_VERSION_VARIABLE}
)  # fmt: skip


def load_job(path: Path) -> Job:
    """The job one file declares.

    Raises:
        ConfigError: Others may write it, or it is no valid job; names file, line and nearest key.
    """
    refuse_untrusted(path)
    return read_job(load_document(path))


def load_jobs(paths: Iterable[Path]) -> dict[str, Job]:
    """Jobs by name; two files that declare one name are an error."""
    jobs: dict[str, Job] = {}
    for path in paths:
        job = load_job(path)
        if job.name in jobs:
            raise ConfigError(f"{path}: job {job.name!r} is already in {jobs[job.name].origin}")
        jobs[job.name] = job
    return jobs


def read_job(document: Document) -> Job:
    """The job a parsed document declares."""
    top = open_kind(document, "Job", _KEYS)
    checkpoint = top.section("checkpoint")
    checkpoint.allow(("directory", "layout"))
    nodes = _read_nodes(top)
    ranks_per_node = _positive(top, "ranks_per_node", 1)
    return Job(
        name=_read_name(top),
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        axes=_read_axes(top, len(nodes) * ranks_per_node),
        launch=_read_launch(top),
        checkpoint_dir=_absolute(checkpoint, "directory"),
        checkpoint_layout=checkpoint.choice("layout", LAYOUTS, LAYOUTS[0]),
        log_dir=_absolute(top, "logs"),
        progress_dir=_absolute(top, "progress"),
        environment=_read_environment(top.section("environment")),
        workdir=_absolute(top, "workdir") if "workdir" in top.data else None,
        warm=_read_warm(top),
        stall_after_s=top.duration_s("stall_after", "60s"),
        master_port=_port(top),
        sbatch=_read_sbatch(top.section("slurm")),
        origin=f"{document.path}:{top.line('name') or 1}",
        code=_read_code(top.section("code")) if "code" in top.data else None,
    )


def _read_name(top: Section) -> str:
    name = top.value("name", str)
    if not _NAME.fullmatch(name):
        raise top.error(f"{name!r}: a job name has letters, digits, dot, dash, underscore", "name")
    return name


def _read_nodes(top: Section) -> tuple[str, ...]:
    """Node names in rank order: a folded set, or a list of them in the order it is written."""
    texts = (
        top.texts("nodes")
        if isinstance(top.data.get("nodes"), list)
        else (top.value("nodes", str),)
    )
    try:
        names = [name for text in texts for name in expand(text)]
    except UsageError as exc:
        raise top.error(f"'nodes': {exc}", "nodes") from exc
    if not names:
        raise top.error("'nodes' names no node", "nodes")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise top.error(f"node {twice!r} is listed twice", "nodes")
    return tuple(names)


def _read_axes(top: Section, world_size: int) -> tuple[tuple[str, int], ...]:
    """Parallel sizes, fastest varying first; without any, every rank is a data-parallel replica."""
    if "parallel" not in top.data:
        return (("dp", world_size),)
    parallel = top.section("parallel")
    parallel.allow(("order", *AXES))
    order = parallel.texts("order", tuple(axis for axis in AXES if axis in parallel.data))
    for axis in order:
        if axis not in AXES or order.count(axis) > 1:
            raise parallel.error(f"'order': {axis!r}; {did_you_mean(axis, AXES)}", "order")
    unordered = sorted(set(parallel.data) - {"order", *order})
    if unordered:
        raise parallel.error(f"{unordered[0]!r} is not in 'order'", unordered[0])
    axes = tuple((axis, _positive(parallel, axis, 1)) for axis in order)
    if prod(size for _, size in axes) != world_size:
        sizes = " x ".join(f"{axis} {size}" for axis, size in axes)
        raise top.error(f"{sizes} is not the world size of {world_size} ranks", "parallel")
    return axes


def _read_launch(top: Section) -> tuple[str, ...]:
    launch = top.texts("launch")
    if not launch or not launch[0]:
        raise top.error("'launch' needs a program", "launch")
    if any("\0" in word for word in launch):
        raise top.error("'launch' holds a NUL character", "launch")
    return launch


def _read_warm(top: Section) -> tuple[str, ...]:
    names = top.texts("warm", ())
    for name in names:
        if not _MODULE.fullmatch(name):
            raise top.error(f"'warm': {name!r} is not the name of a module", "warm")
    return names


def _read_code(section: Section) -> JobCode:
    section.allow(("releases", "start"))
    start = section.value("start", str)
    if not RELEASE.fullmatch(start):
        raise section.error(f"'start': {start!r} is not the name of a directory", "start")
    return JobCode(_absolute(section, "releases"), start, start)


def _read_environment(section: Section) -> dict[str, str]:
    for key, value in section.data.items():
        if not _VARIABLE.fullmatch(key):
            raise section.error(f"{key!r} is not the name of an environment variable", key)
        if key in RESERVED_ENVIRONMENT:
            raise section.error(f"{key!r} is set by brctl for every rank", key)
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise section.error(f"{key!r} must be text; quote it", key)
    return {key: str(value) for key, value in section.data.items()}


def _read_sbatch(section: Section) -> dict[str, str]:
    """Options for sbatch; `true` is a bare flag and kept as ""."""
    section.allow(SBATCH_OPTIONS)
    for key, value in section.data.items():
        is_text = isinstance(value, str | int) and value is not False
        if not is_text or not str(value).isprintable() or value == "":
            raise section.error(f"{key!r} must be text, a number or true", key)
    return {key: "" if value is True else str(value) for key, value in section.data.items()}


def _absolute(section: Section, key: str, default: str | None = None) -> PurePosixPath:
    path = PurePosixPath(section.value(key, str, default))
    if not path.is_absolute() or ".." in path.parts:
        raise section.error(f"{key!r} must be an absolute path on the nodes, not {path}", key)
    return path


def _positive(section: Section, key: str, default: int) -> int:
    value = section.value(key, int, default)
    if value < 1:
        raise section.error(f"{key!r} must be at least 1, not {value}", key)
    return value


def _port(top: Section) -> int:
    port = top.value("master_port", int, 29500)
    if not 1024 <= port <= 65535:
        raise top.error(f"'master_port' must be between 1024 and 65535, not {port}", "master_port")
    return port
