"""Choose the backend a context names."""

from collections.abc import Mapping

from brctl.backends.contract import Backend
from brctl.backends.kubectl import Kubectl
from brctl.backends.kubernetes import KubernetesBackend
from brctl.backends.slurm import SlurmBackend
from brctl.backends.static import StaticBackend
from brctl.fanout.contract import Transport
from brctl.library.config import Settings
from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory

OVER_SSH: Mapping[str, type[StaticBackend]] = {"static": StaticBackend, "slurm": SlurmBackend}
"""Backends that ask the nodes themselves what their ranks do."""


def open_backend(settings: Settings, transport: Transport, inventory: Inventory) -> Backend:
    """The backend of a context.

    Raises:
        ConfigError: This version has no such backend.
    """
    if settings.scheduler == KubernetesBackend.name:
        chosen = settings.kubernetes
        keep = settings.state_dir / "kubernetes" / settings.context
        return KubernetesBackend(Kubectl(chosen.context, chosen.namespace), inventory, keep)
    kind = OVER_SSH.get(settings.scheduler)
    if kind is None:
        raise ConfigError(f"scheduler {settings.scheduler!r} is not supported by this version")
    state_file = settings.state_dir / "static" / f"{settings.context}.json"
    return kind(state_file, transport, inventory, settings.ssh.fanout)
