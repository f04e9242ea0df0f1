"""One search for who fails collectives: nodes, runner, rounds, record; for every front end."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from brctl.engine.controller.clock import now
from brctl.engine.controller.readonly import refuse_readonly
from brctl.engine.search.bisect import BisectOptions, Preflight, bisect
from brctl.engine.search.bisect_inputs import labelled_leaves, leaves_for, read_leaves, read_prior
from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.engine.search.group_runner_exec import exec_runner
from brctl.engine.search.group_search import ALONE_S
from brctl.engine.search.recorded import OnRound, Recorded, SearchRecord, record_search
from brctl.localise.problem import BANDWIDTH_BAR, SearchProblem
from brctl.model.errors import ConfigError, GuardError, NoConfigError, UsageError
from brctl.model.localisation import Bisection, FaultKind
from brctl.model.nodeset import expand
from brctl.model.units import parse_duration_s, parse_size_bytes

if TYPE_CHECKING:
    from brctl.engine.controller.wiring import Controller
    from brctl.library.config import Settings

_EXEC = "exec:"
_NOTHING = Preflight()


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """One search, as a person asks for it.

    Attributes:
        include: As with -w; None for all nodes.
        job: Its nodes instead; None for none.
        runner: torch, nccl-tests, or exec:COMMAND.
        golden: Nodes to test against first, by selectors; "" for none.
        by: What is tested: node, gpu or rail; `per_node` of the latter two a node.
        leaf: CSV file with the leaf of each node.
        prior: CSV file with what is known against nodes.
        readonly: Whoever asks said so; it holds without a context too.
    """

    include: str | None = None
    exclude: str | None = None
    job: str | None = None
    runner: str = "torch"
    op: str = "all_reduce"
    size: str = "1G"
    reps: int = 8
    budget: str = "10m"
    round_deadline: str = "5m"
    bar: float = BANDWIDTH_BAR
    golden: str = ""
    by: str = "node"
    per_node: int = 8
    leaf: Path | None = None
    max_groups: int | None = None
    span: int = 1
    prior: Path | None = None
    seed: int = 0
    prove: bool = False
    readonly: bool = False

    @property
    def wanted(self) -> str | None:
        """The nodes as one text."""
        return self.include if self.job is None else f"@job:{self.job}"


@dataclass(frozen=True, slots=True)
class _Ready:
    """Everything a search needs, and where it is recorded."""

    problem: SearchProblem
    runner: GroupRunner
    before: Preflight = _NOTHING
    state_dir: Path | None = None
    context: str = ""


@dataclass(frozen=True, slots=True)
class SearchDone:
    """A search with its stored verdicts, and the context it was made in; "" without one."""

    found: Recorded
    context: str


async def search(
    open_settings: Callable[[], Settings],
    request: SearchRequest,
    say: Callable[[str], None],
    also: Sequence[TextIO] = (),
    on_round: OnRound | None = None,
) -> SearchDone:
    """Search once; the rounds are followed in the terminal, the verdicts by `why` and `fix`.

    A context is opened only by what needs one: a runner over SSH, a selector.

    Raises:
        UsageError: The runner, a size, a duration or a selector makes no sense.
    """
    options = _options(request)
    async with _prepared(open_settings, request, options, say) as ready:

        async def drive(tell: OnRound) -> Bisection:
            return await bisect(ready.problem, options, ready.runner, now, tell, ready.before)

        verdicts_for = (ready.context, request.job or "") if ready.state_dir else None
        record = SearchRecord(ready.state_dir, also, verdicts_for)
        nodes, runner = ready.problem.nodes, ready.runner.name
        found = await record_search(nodes, runner, drive, record, on_round)
    return SearchDone(found, ready.context)


@asynccontextmanager
async def _prepared(
    open_settings: Callable[[], Settings],
    request: SearchRequest,
    options: BisectOptions,
    say: Callable[[str], None],
) -> AsyncIterator[_Ready]:
    """Resolve nodes and open the runner; SSH only when the runner needs it."""
    if request.runner.startswith(_EXEC):
        _refuse_readonly_program(open_settings, request)
        yield await _with_program(open_settings, request)
        return
    if request.by != "node":
        raise UsageError(f"--by {request.by} needs --runner exec:COMMAND; others test whole nodes")
    prepare = {"torch": _over_ssh, "nccl-tests": _with_nccl_tests}.get(request.runner)
    if prepare is None:
        raise UsageError(
            f"--runner {request.runner}: unknown; use torch, nccl-tests or exec:COMMAND"
        )
    from brctl.engine.controller.wiring import open_controller

    settings = open_settings()
    refuse_readonly(settings, "a search")
    async with (
        open_controller(settings) as controller,
        prepare(controller, request, options, say) as ready,
    ):
        yield ready


def _refuse_readonly_program(open_settings: Callable[[], Settings], request: SearchRequest) -> None:
    """A site's own program loads the nodes it tests as ours does; it may run without a context."""
    try:
        settings = open_settings()
    except NoConfigError:
        if request.readonly:
            raise GuardError("refused: a search may load nodes, and --readonly says so") from None
    else:
        refuse_readonly(settings, "a search")


async def _with_program(open_settings: Callable[[], Settings], request: SearchRequest) -> _Ready:
    """A site's program tests names that need no inventory, unless a selector asks for one."""
    runner = exec_runner(request.runner.removeprefix(_EXEC))
    texts = (request.wanted, request.exclude, request.golden)
    names, without, golden = await _resolve(open_settings, texts)
    if request.wanted is None:
        if request.leaf is None:
            raise UsageError("which nodes? -w NODES, or --leaf FILE that lists them")
        names = tuple(read_leaves(request.leaf))
    nodes = tuple(name for name in names if name not in set(without))
    if len(nodes) < 2:
        raise UsageError("a collective needs two nodes or more", hint="add a known-good node")
    return _Ready(_problem(request, nodes, {}, golden), runner)


async def _resolve(
    open_settings: Callable[[], Settings], texts: Sequence[str | None]
) -> list[tuple[str, ...]]:
    """The nodes of each text: by the inventory when one of them holds a selector, else as named."""
    if not any("@" in text for text in texts if text):
        return [expand(text) if text else () for text in texts]
    from brctl.engine.controller.reach import late_cluster
    from brctl.engine.controller.selection import select_nodes

    async with late_cluster(open_settings()) as cluster:
        return [await select_nodes(cluster, text) if text else () for text in texts]


@asynccontextmanager
async def _over_ssh(
    controller: Controller,
    request: SearchRequest,
    options: BisectOptions,
    say: Callable[[str], None],
) -> AsyncIterator[_Ready]:
    from brctl.engine.search.group_preflight import preflight
    from brctl.engine.search.group_runner_torch import TorchRunner

    names, golden = await _chosen(controller, request)
    names += tuple(name for name in golden if name not in names)
    runner = TorchRunner(
        controller.transport, controller.inventory.nodes, controller.settings.ssh.fanout
    )
    order = RoundOrder(0, request.op, options.size_bytes, request.reps, (), ALONE_S)
    try:
        before = await preflight(runner, names, order)
        for note in before.notes:
            say(note)
        leaves = labelled_leaves(controller.inventory, before.nodes)
        fit = tuple(name for name in golden if name in before.nodes)
        problem = _problem(request, before.nodes, leaves, fit)
        yield _Ready(problem, runner, before, controller.state_dir, controller.settings.context)
    finally:
        await runner.close()


@asynccontextmanager
async def _with_nccl_tests(
    controller: Controller,
    request: SearchRequest,
    _options: BisectOptions,
    _say: Callable[[str], None],
) -> AsyncIterator[_Ready]:
    from brctl.engine.search.group_runner_nccl_tests import nccl_tests_runner

    settings = controller.settings
    runner = nccl_tests_runner(request.per_node, settings.scheduler, settings.ssh.fanout)
    names, golden = await _chosen(controller, request)
    problem = _problem(request, names, labelled_leaves(controller.inventory, names), golden)
    yield _Ready(problem, runner, _NOTHING, controller.state_dir, settings.context)


async def _chosen(
    controller: Controller, request: SearchRequest
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The nodes to search, and those to test against."""
    from brctl.engine.controller.selection import select_nodes

    names = await select_nodes(controller, request.wanted, request.exclude)
    return names, await select_nodes(controller, request.golden) if request.golden else ()


def _options(request: SearchRequest) -> BisectOptions:
    try:
        return BisectOptions(
            request.op,
            parse_size_bytes(request.size),
            parse_duration_s(request.budget),
            parse_duration_s(request.round_deadline),
        )
    except ValueError as exc:
        raise UsageError(str(exc)) from exc


def _problem(
    request: SearchRequest,
    nodes: tuple[str, ...],
    known: Mapping[str, str],
    golden: Sequence[str],
) -> SearchProblem:
    """The problem over nodes, or over their GPUs or rails."""
    leaves = read_leaves(request.leaf) if request.leaf else known
    prior = read_prior(request.prior) if request.prior else {}
    units = nodes + tuple(sorted(set(golden) - set(nodes)))
    per = request.per_node if request.by != "node" else 0
    names = tuple(u for node in units for u in _units(node, request.by, per))
    of = dict(zip(names, (n for n in units for _ in range(max(1, per))), strict=True))
    return SearchProblem(
        names,
        leaves_for([of[name] for name in names], leaves),
        reps=request.reps,
        span=_span(request, len(names)),
        max_groups=request.max_groups,
        golden=frozenset(name for name in names if of[name] in golden),
        prior={name: prior[of[name]] for name in names if of[name] in prior},
        seed=request.seed,
        bar=request.bar,
        unit=FaultKind.LINK if request.by == "rail" else FaultKind.NODE,
        prove=request.prove,
    )


def _units(node: str, by: str, per: int) -> tuple[str, ...]:
    return tuple(f"{node}/{by}{i}" for i in range(per)) if per else (node,)


def _span(request: SearchRequest, count: int) -> int:
    if request.span > max(1, count):
        raise ConfigError(f"--span {request.span}: only {count} nodes")
    return request.span
