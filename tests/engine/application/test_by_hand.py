"""What a swap by hand is about: the nodes a text means, and the job they carry."""

from pathlib import Path

import pytest

from brctl.engine.application.by_hand import node_names, swap_inputs
from brctl.library.config import Settings, load_settings
from brctl.model.errors import UsageError
from tests.fakes.site_files import local_config, write_site

CONFIG = local_config("llm", "vision")
INVENTORY = """\
apiVersion: brctl.dev/v1
kind: Inventory
nodes: {n1: {}, n2: {}, n3: {}, n4: {}, n5: {}}
"""
JOB = """\
apiVersion: brctl.dev/v1
kind: Job
name: %s
nodes: %s
launch: [/bin/true]
checkpoint: {directory: /tmp/ckpt}
logs: /tmp/logs
progress: /tmp/progress
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Five nodes: llm on n1 and n2, vision on n3 and n4, nothing on n5."""
    llm, vision = JOB % ("llm", "n[1-2]"), JOB % ("vision", "n[3-4]")
    config = write_site(tmp_path, CONFIG, INVENTORY, llm=llm, vision=vision)
    return load_settings({}, config=config)


async def test_the_job_of_a_swap_is_the_one_its_nodes_carry(settings: Settings) -> None:
    assert await swap_inputs(settings, "n[3,5]", None, "smells") == {
        "suspects": ["n3", "n5"], "job": "vision", "reason": "smells",
    }  # fmt: skip
    assert (await swap_inputs(settings, "@job:llm!n1", None, ""))["suspects"] == ["n2"]


@pytest.mark.parametrize(("nodes", "carried"), [("n[2-3]", "llm, vision"), ("n5", "no job")])
async def test_a_job_that_is_not_clear_is_asked_for(
    settings: Settings, nodes: str, carried: str
) -> None:
    """Nodes of two jobs, or of none, need the name; with it nothing is guessed."""
    with pytest.raises(UsageError, match=f"{carried}") as caught:
        await swap_inputs(settings, nodes, None, "")
    assert caught.value.hint == "name it with --job"
    assert (await swap_inputs(settings, nodes, "llm", ""))["job"] == "llm"


async def test_nodes_of_a_run_are_what_a_selector_means(settings: Settings) -> None:
    assert await node_names(settings, "@job:vision,n1") == ["n1", "n3", "n4"]
