"""From the options of `nccl bisect` to a problem, a runner and its limits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from brctl.engine.controller.clock import now
from brctl.engine.search.bisect import BisectOptions, Preflight
from brctl.engine.search.bisect_inputs import labelled_leaves, leaves_for, read_leaves, read_prior
from brctl.engine.search.group_runner import GroupRunner, RoundOrder
from brctl.engine.search.group_runner_exec import exec_runner
from brctl.localise.problem import SearchProblem
from brctl.model.errors import ConfigError, UsageError
from brctl.model.localisation import Bisection, FaultKind
from brctl.model.nodeset import expand
from brctl.model.units import parse_duration_s, parse_size_bytes
from brctl.view.notices.page import Page

if TYPE_CHECKING:
    from brctl.cli.commands.nccl import Search
    from brctl.cli.invocation import Invocation

_EXEC = "exec:"
_OVER_SSH = ("torch",)
_ALONE_S = 60.0
_NOTHING = Preflight()


@dataclass(frozen=True, slots=True)
class Ready:
    """Everything a search needs."""

    problem: SearchProblem
    options: BisectOptions
    runner: GroupRunner
    context: str = ""
    before: Preflight = _NOTHING
    state_dir: Path | None = None
    job: str = ""

    def keep(self, result: Bisection, page: Page) -> Page:
        """Store the search and its verdicts where there is a context; next is to act on them."""
        from brctl.engine.search.bisect_store import conclude_verdicts, save

        if self.state_dir is None:
            return page
        save(self.state_dir, result.id, page.body)
        verdicts = conclude_verdicts(self.state_dir, self.context, result, self.job, now())
        if not verdicts:
            return page
        ids = [verdict.id for verdict in verdicts]
        body = {**page.body, "stored_verdicts": ids}
        return replace(page, body=body, next=(f"brctl why {ids[0]}", f"brctl fix {ids[0]}"))


@asynccontextmanager
async def prepared(invocation: Invocation, search: Search) -> AsyncIterator[Ready]:
    """Resolve nodes and open the runner; SSH only when the runner needs it."""
    options = _options(search)
    if search.runner.startswith(_EXEC):
        runner = exec_runner(search.runner.removeprefix(_EXEC))
        nodes = _plain_nodes(invocation, search)
        if len(nodes) < 2:
            raise UsageError("a collective needs two nodes or more", hint="add a known-good node")
        yield Ready(_problem(search, nodes, {}), options, runner)
        return
    if search.by != "node":
        raise UsageError(f"--by {search.by} needs --runner exec:COMMAND; others test whole nodes")
    if search.runner in _OVER_SSH:
        async with _over_ssh(invocation, search, options) as ready:
            yield ready
        return
    if search.runner == "nccl-tests":
        async with _with_nccl_tests(invocation, search, options) as ready:
            yield ready
        return
    raise UsageError(f"--runner {search.runner}: unknown; use torch, nccl-tests or exec:COMMAND")


@asynccontextmanager
async def _over_ssh(
    invocation: Invocation, search: Search, options: BisectOptions
) -> AsyncIterator[Ready]:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_world
    from brctl.engine.search.group_preflight import preflight
    from brctl.engine.search.group_runner_torch import TorchRunner

    settings = invocation.settings()
    async with open_world(settings) as world:
        wanted = invocation.nodes if search.job is None else f"@job:{search.job}"
        names = await select_nodes(world, wanted, invocation.exclude)
        extra = await select_nodes(world, search.golden) if search.golden else ()
        names += tuple(name for name in extra if name not in names)
        runner = TorchRunner(world.transport, world.inventory.nodes, settings.ssh.fanout)
        order = RoundOrder(0, search.op, options.size_bytes, search.reps, (), _ALONE_S)
        try:
            before = await preflight(runner, names, order)
            for note in before.notes:
                invocation.note(note)
            leaves = labelled_leaves(world.inventory, before.nodes)
            problem = _problem(search, before.nodes, leaves)
            yield Ready(
                problem,
                options,
                runner,
                settings.context,
                before,
                world.state_dir,
                search.job or "",
            )
        finally:
            await runner.close()


@asynccontextmanager
async def _with_nccl_tests(
    invocation: Invocation, search: Search, options: BisectOptions
) -> AsyncIterator[Ready]:
    from brctl.engine.controller.selection import select_nodes
    from brctl.engine.controller.wiring import open_world
    from brctl.engine.search.group_runner_nccl_tests import nccl_tests_runner

    settings = invocation.settings()
    runner = nccl_tests_runner(search.per_node, settings.scheduler, settings.ssh.fanout)
    async with open_world(settings) as world:
        wanted = invocation.nodes if search.job is None else f"@job:{search.job}"
        names = await select_nodes(world, wanted, invocation.exclude)
        leaves = labelled_leaves(world.inventory, names)
        job = search.job or ""
        problem = _problem(search, names, leaves)
        yield Ready(problem, options, runner, settings.context, _NOTHING, world.state_dir, job)


def _options(search: Search) -> BisectOptions:
    try:
        return BisectOptions(
            search.op,
            parse_size_bytes(search.size),
            parse_duration_s(search.budget),
            parse_duration_s(search.round_deadline),
        )
    except ValueError as exc:
        raise UsageError(str(exc)) from exc


def _plain_nodes(invocation: Invocation, search: Search) -> tuple[str, ...]:
    """Nodes without an inventory: any names are accepted, `-x` is taken away."""
    if search.job is not None:
        raise UsageError("--job needs an inventory; with exec: name the nodes with -w")
    if invocation.nodes is None and search.leaf is None:
        raise UsageError("which nodes? -w NODES, or --leaf FILE that lists them")
    if invocation.nodes is not None:
        named = expand(invocation.nodes)
    else:
        named = tuple(read_leaves(search.leaf)) if search.leaf else ()
    without = frozenset(expand(invocation.exclude)) if invocation.exclude else frozenset()
    return tuple(name for name in named if name not in without)


def _problem(search: Search, nodes: tuple[str, ...], known: Mapping[str, str]) -> SearchProblem:
    """The problem over nodes, or over their GPUs or rails."""
    leaves = read_leaves(search.leaf) if search.leaf else known
    prior = read_prior(search.prior) if search.prior else {}
    golden = frozenset(expand(search.golden)) if search.golden else frozenset()
    strangers = golden - set(nodes)
    units = nodes + tuple(sorted(strangers))
    per = search.per_node if search.by != "node" else 0
    names = tuple(u for node in units for u in _units(node, search.by, per))
    of = dict(zip(names, (n for n in units for _ in range(max(1, per))), strict=True))
    cabling = leaves_for([of[name] for name in names], leaves)
    return SearchProblem(
        names,
        cabling,
        reps=search.reps,
        span=_span(search, len(names)),
        max_groups=search.max_groups,
        golden=frozenset(name for name in names if of[name] in golden),
        prior={name: prior[of[name]] for name in names if of[name] in prior},
        seed=search.seed,
        bar=search.bar,
        unit=FaultKind.LINK if search.by == "rail" else FaultKind.NODE,
        prove=search.prove,
    )


def _units(node: str, by: str, per: int) -> tuple[str, ...]:
    return tuple(f"{node}/{by}{i}" for i in range(per)) if per else (node,)


def _span(search: Search, count: int) -> int:
    if search.span > max(1, count):
        raise ConfigError(f"--span {search.span}: only {count} nodes")
    return search.span
