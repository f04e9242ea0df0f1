"""A job looked at again and again over connections that stay open: real probes, this machine."""

import asyncio
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.controller.wiring import Controller, open_controller
from brctl.engine.job import top
from brctl.engine.job.top import HeldJob, follow, look_once
from brctl.model.errors import UsageError
from brctl.view.job.top import top_page
from tests.fakes.local_job import at_step, site
from tests.timeouts import TIMEOUT_S


def test_a_new_step_comes_over_the_connection_that_is_held(tmp_path: Path) -> None:
    """The first look is whole at once; the newer step is read without another login."""
    settings = site(tmp_path)

    async def scenario() -> list[int | None]:
        steps: list[int | None] = []
        async with (
            asyncio.timeout(TIMEOUT_S),
            open_controller(settings) as controller,
            aclosing(follow(controller, None, 0.5)) as looks,
        ):
            async for look in looks:
                steps.append(look.status.step)
                if len(steps) == 1:
                    at_step(tmp_path, 41)
                if look.status.step == 41:
                    break
        return steps

    steps = asyncio.run(scenario())
    assert (steps[0], steps[-1]) == (40, 41)


def test_a_node_that_has_never_answered_is_silent_and_says_why(tmp_path: Path) -> None:
    settings = site(tmp_path)

    async def scenario() -> None:
        async with open_controller(settings) as controller:
            held = HeldJob(controller, controller.job(None), 60.0, ())
            found = await held.look()
            await held.close()
            assert found.nodes[0].silent == "no answer yet"
            assert found.status.stalled is None

    asyncio.run(scenario())


def test_a_job_that_moves_to_a_node_nobody_knows_is_looked_at_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = site(tmp_path)

    async def elsewhere(controller: Controller) -> Controller:
        moved = replace(controller.job(None), nodes=("n9",))
        return replace(controller, jobs={moved.name: moved})

    async def scenario() -> None:
        async with open_controller(settings) as controller:
            job = controller.job(None)
            monkeypatch.setattr(top, "with_jobs_placed", elsewhere)
            held = HeldJob(controller, job, 60.0, ())
            found = await held.look()
            await held.close()
            assert [node.node for node in found.nodes] == list(job.nodes)
            assert "'n9' is not in the inventory" in found.placement_trouble
            assert "placement unknown: " in top_page(found, found, 5).text
            with pytest.raises(UsageError, match="'n9' is not in the inventory"):
                await look_once(controller, replace(job, nodes=("n9",)))

    asyncio.run(scenario())


def test_one_look_is_one_login_and_says_what_a_node_without_gpus_lacks(tmp_path: Path) -> None:
    settings = site(tmp_path)

    async def scenario() -> None:
        async with open_controller(settings) as controller:
            found = await look_once(controller, controller.job("llm"))
            assert found.status.step == 40
            (node,) = found.nodes
            assert "temperature_c" not in node.numbers
            assert dict(node.missing)["gpu.clocks"].startswith("it measured nothing; ")

    asyncio.run(scenario())
