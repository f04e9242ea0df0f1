"""The watcher's Deployment in docs/kubernetes.md fits what the code reads and what it grants."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

import brctl
from brctl.cli.commands.watch import app
from brctl.engine.watch.policy_file import load_watch_policy
from brctl.library.config import load_settings
from brctl.library.jobs import load_job
from brctl.model.watch.policy import WatchMode

_PAGE = (Path(brctl.__file__).parent / "docs" / "kubernetes.md").read_text(encoding="utf-8")


def _blocks(mark: str) -> list[dict[str, Any]]:
    text = _PAGE.partition(f"<!-- {mark} -->")[2].partition("```yaml")[2].partition("```")[0]
    return list(yaml.safe_load_all(text))


def _of(kind: str) -> list[dict[str, Any]]:
    return [item for item in _blocks("watcher") if item["kind"] == kind]


def test_its_files_are_read_as_they_stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Configuration, job and policy of the ConfigMap."""
    (files,) = _of("ConfigMap")
    for name, text in files["data"].items():
        (tmp_path / name).write_text(text)
    settings = load_settings({"HOME": str(tmp_path)}, config=tmp_path / "config.yaml")
    assert settings.kubernetes.namespace == "train"
    assert load_job(settings.jobs[0]).name == "llm"
    assert load_watch_policy(tmp_path / "watch.yaml").mode is WatchMode.OBSERVE


def test_its_command_is_one_that_brctl_knows_and_names_files_that_are_mounted() -> None:
    """And what it mounts is declared, or asked of the site by name."""
    (deployment,) = _of("Deployment")
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    words = container["command"]
    known = {flag for option in get_command(app).params for flag in option.opts} | {"--config"}
    assert words[:2] == ["brctl", "watch"]
    assert {word for word in words if word.startswith("--")} <= known
    paths = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {word for word in words if word.startswith("/")} <= paths
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in spec["volumes"]
    }


def test_its_service_account_has_the_roles_of_the_page_and_no_others() -> None:
    """Roles are those of the manifest of rights, bound where they are."""
    roles = {
        (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace"))
        for item in _blocks("table: kubernetes-manifest")
    }
    for binding in (*_of("ClusterRoleBinding"), *_of("RoleBinding")):
        ref, where = binding["roleRef"], binding["metadata"].get("namespace")
        assert (ref["kind"], ref["name"], where) in roles
        assert [who["name"] for who in binding["subjects"]] == ["brctl-watch"]
