"""Read job.yaml: where a training job's ranks run, how they are started, where it saves."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from math import prod
from pathlib import Path, PurePosixPath

from brctl.evidence.logs.progress.formats import AUTO, OWN, patterns_of
from brctl.library.file_tables import AXES, JOB, LAYOUTS, LOG_FORMATS, SBATCH_OPTIONS
from brctl.library.schema import Mistakes, Section, open_kind
from brctl.library.strict_yaml import Document, load_document
from brctl.library.trusted_files import refuse_untrusted
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.model.jobs.checkpoint_layouts import CHECKPOINT_NAMES, names_of_pattern
from brctl.model.jobs.code import JobCode
from brctl.model.jobs.job import CODE_DIR_VARIABLE, CODE_VERSION_VARIABLE, SLOT_DIR_VARIABLE, Job
from brctl.model.jobs.log_progress import LogProgress
from brctl.model.nodeset import expand
from brctl.model.pattern_cost import why_costly

_KEYS = tuple(JOB)
PATTERN_LIMIT = 1000
_ROOT = PurePosixPath("/")
_NONE: tuple[str, ...] = ()
_NO_AXES: tuple[tuple[str, int], ...] = ()

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
     "LOCAL_WORLD_SIZE", CODE_DIR_VARIABLE, CODE_VERSION_VARIABLE, SLOT_DIR_VARIABLE}
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
    """The job a parsed document declares.

    Raises:
        ConfigError: All its mistakes, a line each.
    """
    keys = document.data if isinstance(document.data, dict) else ()
    top, found = open_kind(document, "Job", keys), Mistakes()
    found.allow(top, ("apiVersion", "kind", *_KEYS))
    take = found.take
    nodes = take(lambda: _read_nodes(top), _NONE)
    ranks_per_node = take(lambda: _positive(top, "ranks_per_node", 1), 0)
    ranks = len(nodes) * ranks_per_node
    name = take(lambda: _read_name(top), "")
    axes = take(lambda: _read_axes(top, ranks) if ranks else _NO_AXES, _NO_AXES)
    launch = take(lambda: _read_launch(top), _NONE)
    checkpoint_dir, layout, pattern, slots = _read_checkpoint(top, found)
    log_dir = take(lambda: _absolute(top, "logs"), _ROOT)
    progress_dir, log_progress = _read_progress(top, found)
    environment = _read_mapping(top, "environment", _variable, found)
    workdir = take(lambda: _absolute(top, "workdir") if "workdir" in top.data else None, None)
    warm = take(lambda: _read_warm(top), _NONE)
    stall_after_s = take(lambda: top.duration_s("stall_after", "60s"), 0.0)
    master_port = take(lambda: _port(top), 0)
    sbatch = _read_mapping(top, "slurm", _sbatch_option, found)
    code = take(lambda: _read_code(top.section("code")) if "code" in top.data else None, None)
    found.refuse()
    return Job(
        name=name,
        nodes=nodes,
        ranks_per_node=ranks_per_node,
        axes=axes,
        launch=launch,
        checkpoint_dir=checkpoint_dir,
        checkpoint_layout=layout,
        checkpoint_pattern=pattern,
        slot_directory=slots,
        log_dir=log_dir,
        progress_dir=progress_dir,
        log_progress=log_progress,
        environment=environment,
        workdir=workdir,
        warm=warm,
        stall_after_s=stall_after_s,
        master_port=master_port,
        sbatch=sbatch,
        origin=f"{document.path}:{top.line('name') or 1}",
        code=code,
    )


def _read_progress(top: Section, found: Mistakes) -> tuple[PurePosixPath, LogProgress | None]:
    """The directory of progress files, or where in logs steps are read."""
    if not isinstance(top.data.get("progress"), dict):
        return found.take(lambda: _absolute(top, "progress"), _ROOT), None
    progress = found.take(lambda: top.section("progress"), None)
    if progress is None:
        return _ROOT, None
    found.allow(progress, ("log", "format", "pattern", "directory"))
    directory = found.take(
        lambda: _absolute(progress, "directory", str(top.data.get("logs", "/"))), _ROOT
    )
    log = found.take(lambda: str(_absolute(progress, "log")) if "log" in progress.data else "", "")
    name = found.take(lambda: progress.choice("format", LOG_FORMATS, AUTO), AUTO)
    own = found.take(lambda: _log_pattern(progress), "")
    patterns = patterns_of(OWN if own else name, own)
    source = LogProgress(log, OWN if own else name, tuple((n, tuple(p)) for n, p in patterns))
    return directory, source


def _log_pattern(progress: Section) -> str:
    """A job's own pattern; it runs on nodes, on lines that anybody may have written."""
    text = progress.value("pattern", str, "")
    if not text:
        return ""
    if "format" in progress.data:
        raise progress.error("'pattern' and 'format' exclude each other", "pattern")
    try:
        groups = re.compile(text).groupindex
    except (re.error, OverflowError) as exc:
        raise progress.error(f"'pattern': not a regular expression: {exc}", "pattern") from exc
    if "step" not in groups:
        raise progress.error("'pattern' needs a group (?P<step>...)", "pattern")
    why = why_costly(text) or (
        f"is longer than {PATTERN_LIMIT}" if len(text) > PATTERN_LIMIT else ""
    )
    if why:
        raise progress.error(f"'pattern' {why}", "pattern")
    return text


def _read_checkpoint(
    top: Section, found: Mistakes
) -> tuple[PurePosixPath, str, str, PurePosixPath | None]:
    """Directory, layout and own pattern of names, and where steps are kept in memory."""
    checkpoint = found.take(lambda: top.section("checkpoint"), None)
    if checkpoint is None:
        return _ROOT, LAYOUTS[0], "", None
    found.allow(checkpoint, ("directory", "layout", "pattern", "slots"))
    directory = found.take(lambda: _absolute(checkpoint, "directory"), _ROOT)
    layout = found.take(lambda: checkpoint.choice("layout", LAYOUTS, LAYOUTS[0]), "")
    pattern = found.take(lambda: _pattern(checkpoint, layout), "") if layout else ""
    if "slots" not in checkpoint.data:
        return directory, layout, pattern, None
    return directory, layout, pattern, found.take(lambda: _absolute(checkpoint, "slots"), _ROOT)


def _pattern(checkpoint: Section, layout: str) -> str:
    pattern = checkpoint.value("pattern", str, "")
    if not pattern and not CHECKPOINT_NAMES[layout]:
        problem = f"'pattern' is needed with layout {layout}, such as ckpt_{{step}}.pt"
        raise checkpoint.error(problem, "layout")
    try:
        return pattern if not pattern or names_of_pattern(layout, pattern) else ""
    except ValueError as exc:
        raise checkpoint.error(f"'pattern': {pattern!r} {exc}", "pattern") from exc


def _read_mapping(
    top: Section, key: str, read: Callable[[Section, str], str], found: Mistakes
) -> dict[str, str]:
    """Texts by name; every name is read by itself."""
    section = found.take(lambda: top.section(key), None)
    if section is None:
        return {}
    return {name: found.take(partial(read, section, name), "") for name in section.data}


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


def _variable(section: Section, key: str) -> str:
    if not _VARIABLE.fullmatch(key):
        raise section.error(f"{key!r} is not the name of an environment variable", key)
    if key in RESERVED_ENVIRONMENT:
        raise section.error(f"{key!r} is set by brctl for every rank", key)
    value = section.data[key]
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise section.error(f"{key!r} must be text; quote it", key)
    return str(value)


def _sbatch_option(section: Section, key: str) -> str:
    """An option for sbatch; `true` is a bare flag and kept as ""."""
    if key not in SBATCH_OPTIONS:
        problem = f"unknown key {key!r} in slurm; {did_you_mean(key, SBATCH_OPTIONS)}"
        raise section.error(problem, key)
    value = section.data[key]
    is_text = isinstance(value, str | int) and value is not False
    if not is_text or not str(value).isprintable() or value == "":
        raise section.error(f"{key!r} must be text, a number or true", key)
    return "" if value is True else str(value)


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
