"""Configuration, inventory and jobs of a site, written where a test wants them."""

import sys
from collections.abc import Mapping
from pathlib import Path


def write_site(
    folder: Path, config: str, inventory: str, *, python: str = sys.executable, **others: str
) -> Path:
    """The files of a site, its jobs by name; returns its configuration.

    FOLDER and PYTHON in a text stand for this folder and the interpreter of its nodes.
    """
    texts: Mapping[str, str] = {"config": config, "inventory": inventory, **others}
    for name, text in texts.items():
        written = text.replace("FOLDER", str(folder)).replace("PYTHON", python)
        (folder / f"{name}.yaml").write_text(written)
    return folder / "config.yaml"


def local_config(*jobs: str) -> str:
    """A context `here` whose nodes are all this machine, with jobs by name."""
    names = ", ".join(f"{job}.yaml" for job in jobs)
    listed = f", jobs: [{names}]" if jobs else ""
    return (
        "apiVersion: brctl.dev/v1\nkind: Config\ncontext: here\nstate_dir: state\n"
        "ssh: {transport: local}\ncontexts:\n"
        f"  here: {{inventory: [{{file: inventory.yaml}}]{listed}}}\n"
    )
