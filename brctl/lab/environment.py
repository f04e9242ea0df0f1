"""The environment every process of a lab node starts with."""

import getpass
import os
from collections.abc import Mapping
from pathlib import Path

from brctl.lab import wrong_results
from brctl.lab.compile import Libraries
from brctl.lab.record import NODE_VARIABLE, TAG_VARIABLE, LabRecord
from brctl.lab.spec import Isolation, LabPaths

_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def user_name() -> str:
    """The user that nodes are logged into: the one who runs the lab."""
    return getpass.getuser()


def node_environment(
    record: LabRecord, paths: LabPaths, libraries: Libraries, name: str
) -> dict[str, str]:
    """Variables of one node; nothing of the operator's own environment leaks in but PATH."""
    node = paths.node(name)
    variables = {
        TAG_VARIABLE: record.tag,
        NODE_VARIABLE: name,
        "BRCTL_FAKE_NVML_STATE": str(node.nvml),
        "BRCTL_LAB_FAULTS": str(node.faults),
        "BRCTL_LAB_CLOCK": str(node.clock),
        "BRCTL_LAB_KERNEL_LOG": str(kernel_log(record, paths, name)),
        "LD_LIBRARY_PATH": str(libraries.nvml_dir),
        "BRCTL_LAB_WRONG_RESULTS": str(node.wrong_results),
        "BRCTL_LAB_TORCH_ENTRY": wrong_results.__file__,
        "LD_PRELOAD": f"{libraries.clock}:{libraries.python}",
        "PATH": f"{node.programs}:{os.environ.get('PATH', _PATH)}",
        "LANG": "C.UTF-8",
    }
    if record.isolation is Isolation.NETNS:
        variables["BRCTL_LAB_SCRATCH"] = str(paths.scratch)
        variables["BRCTL_LAB_MEMORY"] = str(paths.memory)
    return variables


def login_environment(variables: Mapping[str, str], home: Path) -> dict[str, str]:
    """What an SSH server adds at login; OpenSSH does this itself."""
    user = user_name()
    return {**variables, "HOME": str(home), "USER": user, "LOGNAME": user, "SHELL": "/bin/sh"}


def kernel_log(record: LabRecord, paths: LabPaths, name: str) -> Path:
    """Where programs on a node read its kernel log."""
    if record.isolation is Isolation.NETNS:
        return Path("/dev/kmsg")
    return paths.node(name).kernel_log
