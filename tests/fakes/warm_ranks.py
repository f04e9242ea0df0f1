"""Labs whose ranks start warm, where a test is not about their start (decision 0438)."""

import asyncio
from pathlib import Path

import yaml

from brctl.lab.cluster import Lab
from tests.fakes import warm_server
from tests.fakes.warm_server import SERVE
from tests.lab.ssh import run

_WRAPPER = """\
#!/bin/sh
case "$*" in "-I -" | {serve}) exec {python} -P {program} "$@" ;; esac
exec {python} "$@"
"""


async def start_warm(lab: Lab, folder: Path) -> None:
    """Have the nodes of a lab start ranks warm; the job's own command stays what it is.

    A node that loses its power starts cold after that.
    """
    document = yaml.safe_load(lab.paths.inventory.read_text())
    wrapper = write_wrapper(folder, document["defaults"]["python"])
    document["defaults"]["python"] = str(wrapper)
    lab.paths.inventory.write_text(yaml.safe_dump(document, sort_keys=False))
    for status, _ in await asyncio.gather(*(run(lab, n, f"{wrapper} {SERVE}") for n in lab.nodes)):
        assert status == 0


def write_wrapper(folder: Path, python: str) -> Path:
    """The interpreter as a program that a node can run in any directory."""
    path, program = folder / "python3", Path(warm_server.__file__).resolve()
    path.write_text(_WRAPPER.format(python=python, program=program, serve=SERVE))
    path.chmod(0o755)
    return path
