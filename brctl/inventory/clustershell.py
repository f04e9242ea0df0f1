"""Groups of ClusterShell's static files, `groups.d/*.yaml`; its upcalls are not run."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from brctl.inventory.facts import InventorySource
from brctl.inventory.select import DeclaredGroups
from brctl.library.strict_yaml import load_document
from brctl.model.errors import ConfigError, UsageError

DEFAULT_FOLDERS = (Path("/etc/clustershell/groups.d"),)


def load_clustershell(folders: Sequence[Path] = DEFAULT_FOLDERS) -> InventorySource:
    """The groups of every `*.yaml` in these folders; the file's first level are its sources.

    Raises:
        ConfigError: A file is not a mapping of sources to groups, or a group cannot be worked out.
    """
    groups: dict[str, tuple[str, ...]] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.yaml")) if os.access(folder, os.R_OK) else ():
            groups |= _read(path)
    return InventorySource("clustershell", (), groups)


def _read(path: Path) -> dict[str, tuple[str, ...]]:
    document = load_document(path)
    if not isinstance(document.data, dict):
        raise document.error("must be a mapping of sources to groups")
    read: dict[str, tuple[str, ...]] = {}
    for source, groups in document.data.items():
        if not isinstance(groups, dict):
            raise document.error(f"source {source!r} must be a mapping of groups", source)
        declared = DeclaredGroups({name: _text(value) for name, value in groups.items()})
        for name in groups:
            try:
                members = declared.members(name)
            except UsageError as exc:
                raise document.error(f"group {name!r}: {exc}", source, name) from exc
            read[name] = read[f"{source}:{name}"] = members
    return read


def _text(value: object) -> str:
    """A group is a node set, or a list of them."""
    return ",".join(map(str, value)) if isinstance(value, list) else str(value or "")


def folders_of(setting: object, config_file: Path | None) -> tuple[Path, ...]:
    """Folders from `clustershell: {}` or `clustershell: {folders: [...]}`.

    Raises:
        ConfigError: It is something else.
    """
    if setting is None or setting == {}:
        return DEFAULT_FOLDERS
    if isinstance(setting, Mapping) and isinstance(setting.get("folders"), list):
        return tuple(Path(str(folder)) for folder in setting["folders"])
    raise ConfigError(f"{config_file}: clustershell must be {{}} or {{folders: [PATH, ...]}}")
