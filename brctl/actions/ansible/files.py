"""What `ansible-playbook` is given: an inventory of exactly these nodes, variables, our callback.

Every text is tagged `!unsafe`: Ansible would run a `{{ ... }}` in a host name or a verdict's title.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import yaml

from brctl.actions.ansible.callback import CALLBACK, NAME
from brctl.actions.contract import NothingDone
from brctl.fanout.openssh_transport import options_for
from brctl.library.config import SshSettings
from brctl.library.durable_files import write_atomic
from brctl.model.inventory import Inventory, Node
from brctl.model.runs.playbook import Json

INVENTORY, VARIABLES, EVENTS = "inventory.yaml", "variables.yaml", "events.ndjson"
SOCKETS = "cp"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LEAD_ELSEWHERE = re.compile(r"ansible_(ssh_)?(host|port|user|connection|common_args|.*_args)")
"""Variables that would send Ansible to another machine than the nodes of the step."""


class _Text(str):
    """A text that is data, whatever is in it."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Plain data with every text tagged."""


_Dumper.add_representer(_Text, lambda d, v: d.represent_scalar("!unsafe", str(v), style='"'))


def _dump(value: object) -> bytes:
    return yaml.dump(value, Dumper=_Dumper, sort_keys=True, allow_unicode=True).encode()


def _tagged(value: Json) -> object:
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, Mapping):
        return {str(key): _tagged(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_tagged(item) for item in value]
    return value


def write_files(
    folder: Path, nodes: Sequence[str], inventory: Inventory, ssh: SshSettings, variables: Json
) -> None:
    """Everything into a private folder; nothing of it is on a command line.

    Raises:
        NothingDone: A variable cannot be given.
    """
    hosts = {node: _host(inventory.nodes[node], ssh) for node in nodes}
    groups: dict[str, object] = {
        name: {"hosts": {node: {} for node in members if node in hosts}}
        for name, members in inventory.groups.items()
        if _NAME.fullmatch(name) and name not in ("all", "ungrouped") and set(members) & set(hosts)
    }
    write_atomic(folder / INVENTORY, _dump({"all": {"hosts": hosts, "children": groups}}))
    write_atomic(folder / VARIABLES, _dump(_variables(variables)))
    (folder / "callback").mkdir(mode=0o700)
    write_atomic(folder / "callback" / f"{NAME}.py", CALLBACK.encode())


def _host(node: Node, ssh: SshSettings) -> dict[str, object]:
    python = _Text(node.python)
    if ssh.transport == "local":
        return {"ansible_connection": "local", "ansible_python_interpreter": python}
    known: dict[str, Json] = {"ansible_host": node.address, "ansible_port": node.port}
    if node.user or ssh.user:
        known["ansible_user"] = node.user or ssh.user
    known["ansible_python_interpreter"] = node.python
    options = (*options_for(ssh, node), "-o", "BatchMode=yes")
    known["ansible_ssh_common_args"] = shlex.join(options)
    return {key: _tagged(value) for key, value in known.items()}


def _variables(value: Json) -> dict[str, object]:
    if not isinstance(value, Mapping):
        raise NothingDone(f"`vars` must map names to values, not {value!r}")
    for name in value:
        if not _NAME.fullmatch(str(name)):
            raise NothingDone(f"`vars`: {name!r} is no name of a variable")
        if _LEAD_ELSEWHERE.fullmatch(str(name)):
            raise NothingDone(f"`vars`: {name} would lead to another machine; use the inventory")
    return {str(name): _tagged(item) for name, item in value.items()}
