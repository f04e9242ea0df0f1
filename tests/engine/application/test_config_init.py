"""A first configuration is private, can be read, names nodes, and replaces nothing unasked."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from brctl.engine.application.config_init import InitRequest, init_config
from brctl.inventory.load import load_inventory
from brctl.library.config import load_settings
from brctl.model.errors import BrctlError, ConfigError, UnavailableError, UsageError

EMPTY = InitRequest("prod")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "bin"), "BRCTL_CONTEXT": "x"}


def written(path: Path) -> tuple[str, ...]:
    return tuple(load_inventory(load_settings({"HOME": "/"}, None, path)).nodes)


def test_a_host_list_becomes_a_private_configuration_that_names_its_nodes(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list is named by its whole path, so that it stays the one place that is edited."""
    (tmp_path / "hosts.txt").write_text("# ours\ngpu[01-03]\nspare1 slots=8\n")
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "home" / "brctl" / "config.yaml"
    done = init_config(environ, path, replace(EMPTY, hosts=Path("hosts.txt"), user="ops"))
    assert done.nodes == written(path) == ("gpu01", "gpu02", "gpu03", "spare1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["config.yaml"]
    settings = load_settings({"HOME": "/"}, None, path)
    assert (settings.context, settings.ssh.user) == ("prod", "ops")
    (tmp_path / "hosts.txt").write_text("gpu09\n")
    assert written(path) == ("gpu09",)


def test_hosts_of_an_ssh_config_are_nodes_and_it_says_how_they_are_reached(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "more").write_text("Host gpu3\n  ForwardAgent no\n")
    config = tmp_path / "ssh_config"
    config.write_text(
        f"Include {tmp_path / 'more'}\nHost bastion\n  Port 2222\nHost gpu1 gpu2 !gpu9\n"
        "  ProxyJump bastion\nHost *\n  User ops\n"
    )
    path = tmp_path / "c" / "config.yaml"
    done = init_config(environ, path, replace(EMPTY, ssh_config=config, only=("gpu*",)))
    assert done.nodes == written(path) == ("gpu3", "gpu1", "gpu2")
    assert load_settings({"HOME": "/"}, None, path).ssh.config_file == config
    assert [file.name for file in done.files] == ["config.yaml", "inventory.yaml"]


def test_an_ansible_inventory_and_a_node_set_serve_as_well(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    (tmp_path / "hosts.ini").write_text("[gpu]\ngpu[01:02] ansible_user=ops\n")
    path = tmp_path / "c" / "config.yaml"
    init_config(environ, path, replace(EMPTY, ansible=tmp_path / "hosts.ini"))
    assert written(path) == ("gpu01", "gpu02")
    done = init_config(environ, path, replace(EMPTY, nodes="n[1-3]", replace=True))
    assert written(path) == done.nodes == ("n1", "n2", "n3")
    assert (path.parent / "config.yaml.old").is_file()


def test_gpus_that_are_said_hold_for_every_listed_node(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    """Unsaid they are not known, and whoever sweeps is told so."""
    (tmp_path / "hosts.txt").write_text("10.0.0.[1-2]\n")
    path = tmp_path / "c" / "config.yaml"
    request = replace(EMPTY, hosts=tmp_path / "hosts.txt")
    assert not init_config(environ, path, request).gpus_known
    done = init_config(environ, path, replace(request, gpus=8, replace=True))
    assert done.gpus_known
    nodes = load_inventory(load_settings({"HOME": "/"}, None, path)).nodes
    assert {name: node.gpus for name, node in nodes.items()} == {"10.0.0.1": 8, "10.0.0.2": 8}


def test_slurm_is_asked_and_becomes_the_scheduler(tmp_path: Path, environ: dict[str, str]) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool, line in (("sinfo", "gpu01|batch*|gpu:8|(null)"), ("squeue", "")):
        (tools / tool).write_text(f"#!/bin/sh\nprintf '%s\\n' '{line}'\n")
        (tools / tool).chmod(0o755)
    path = tmp_path / "c" / "config.yaml"
    os.environ["PATH"], before = f"{tools}:{os.environ['PATH']}", os.environ["PATH"]
    try:
        done = init_config(environ, path, replace(EMPTY, slurm="batch"))
    finally:
        os.environ["PATH"] = before
    assert done.nodes == ("gpu01",)
    settings = load_settings({"HOME": "/"}, None, path)
    assert (settings.scheduler, settings.inventory) == (
        "slurm",
        ({"slurm": {"partitions": ["batch"]}},),
    )


@pytest.mark.parametrize(
    ("request_", "error", "words"),
    [
        (EMPTY, UsageError, "nothing says where the nodes are listed"),
        (replace(EMPTY, nodes="n1", slurm="all"), UsageError, "2 were named"),
        (replace(EMPTY, hosts=Path("/nowhere/hosts")), ConfigError, "cannot be read"),
        (replace(EMPTY, nodes="n[1-"), UsageError, "n\\[1-"),
        (replace(EMPTY, nodes="n1", context="a b"), UsageError, "a context has letters"),
        (replace(EMPTY, slurm="all"), UnavailableError, "sinfo"),
        (replace(EMPTY, k8s="prod"), BrctlError, "kubectl"),
    ],
)
def test_what_would_not_work_is_not_written(
    request_: InitRequest,
    error: type[BrctlError],
    words: str,
    tmp_path: Path,
    environ: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    path = tmp_path / "c" / "config.yaml"
    with pytest.raises(error, match=words):
        init_config(environ, path, request_)
    assert not path.parent.exists() or os.listdir(path.parent) == []


def test_what_is_there_is_replaced_by_force_only(tmp_path: Path, environ: dict[str, str]) -> None:
    path = tmp_path / "c" / "config.yaml"
    init_config(environ, path, replace(EMPTY, nodes="n1"))
    with pytest.raises(UsageError, match="is there already"):
        init_config(environ, path, replace(EMPTY, nodes="n2"))
    assert written(path) == ("n1",)
