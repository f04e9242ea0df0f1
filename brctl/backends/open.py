"""Choose the backend a context names; the others are not imported, for cron pays each time."""

from brctl.backends.contract import Backend
from brctl.fanout.contract import Transport
from brctl.library.config import Settings
from brctl.model.errors import ConfigError
from brctl.model.inventory import Inventory


def open_backend(settings: Settings, transport: Transport, inventory: Inventory) -> Backend:
    """The backend of a context.

    Raises:
        ConfigError: This version has no such backend.
    """
    state_file = settings.state_dir / "static" / f"{settings.context}.json"
    if settings.scheduler == "static":
        from brctl.backends.static.backend import StaticBackend

        return StaticBackend(state_file, transport, inventory, settings.ssh.fanout)
    if settings.scheduler == "slurm":
        from brctl.backends.slurm.backend import SlurmBackend

        return SlurmBackend(state_file, transport, inventory, settings.ssh.fanout)
    if settings.scheduler == "kubernetes":
        return _open_kubernetes(settings, transport, inventory)
    raise ConfigError(f"scheduler {settings.scheduler!r} is not supported by this version")


def _open_kubernetes(settings: Settings, transport: Transport, inventory: Inventory) -> Backend:
    from brctl.backends.kubernetes.backend import KubernetesBackend
    from brctl.backends.kubernetes.silence import asking_with
    from brctl.fanout.kubernetes.kubectl import Kubectl

    chosen = settings.kubernetes
    keep = settings.state_dir / "kubernetes" / settings.context
    kubectl = Kubectl(chosen.context, chosen.namespace)
    asking = asking_with(transport, inventory, settings.ssh.fanout)
    return KubernetesBackend(kubectl, inventory, keep, asking)
