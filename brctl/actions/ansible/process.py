"""The program `ansible-playbook`: where it is, what it may know of us, what it leaves behind."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from brctl.actions.ansible.callback import EVENTS_VARIABLE, NAME
from brctl.actions.ansible.files import EVENTS, SOCKETS
from brctl.actions.child import kept_environment
from brctl.actions.context import RunContext
from brctl.actions.contract import NothingDone
from brctl.library.programs.child_start import end_process, start_process

PROGRAM = "ansible-playbook"
INSTALL = "install it on this machine: pip install ansible-core, or apt install ansible-core"
SITE_ENVIRONMENT = (
    "ANSIBLE_CONFIG", "ANSIBLE_VAULT_PASSWORD_FILE", "ANSIBLE_ROLES_PATH",
    "ANSIBLE_COLLECTIONS_PATH", "SSH_AUTH_SOCK", "USER",
)  # fmt: skip
"""What a site tells Ansible by its environment; whatever else is in ours stays here."""

MASTER_ENDS_S = 10.0
"""It answers over a socket here, in a millisecond; stopped or stuck, never."""


def find_program() -> str:
    """Its path on this machine.

    Raises:
        NothingDone: It is not installed.
    """
    found = shutil.which(PROGRAM)
    if found is None:
        raise NothingDone(f"{PROGRAM} is not installed; {INSTALL}")
    return found


def environment_of(folder: Path, context: RunContext) -> dict[str, str]:
    """What it gets to know of ours, and where it finds our callback."""
    return {
        **kept_environment(*SITE_ENVIRONMENT),
        # Ansible refuses to start in a locale that is not UTF-8.
        "LC_ALL": "C.UTF-8",
        "BRCTL_RUN": context.run.name,
        EVENTS_VARIABLE: str(folder / EVENTS),
        "ANSIBLE_CALLBACK_PLUGINS": str(folder / "callback"),
        "ANSIBLE_CALLBACKS_ENABLED": NAME,
        "ANSIBLE_SSH_CONTROL_PATH_DIR": str(folder / SOCKETS),
        "ANSIBLE_RETRY_FILES_ENABLED": "0",
        "ANSIBLE_NOCOLOR": "1",
    }


@asynccontextmanager
async def private_folder() -> AsyncIterator[Path]:
    """A private folder with a short name, for the sockets in it; gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="brctl-ansible-") as folder:
        sockets = Path(folder) / SOCKETS
        sockets.mkdir(mode=0o700)
        try:
            yield Path(folder)
        finally:
            await _end_masters(sockets)


async def _end_masters(folder: Path) -> None:
    """SSH keeps connections open for a minute in sessions of their own; none outlives the step."""
    with os.scandir(folder) as entries:
        sockets = [entry.path for entry in entries]
    for socket in sockets:
        process = await start_process(
            asyncio.create_subprocess_exec(
                "ssh", "-F", "none", "-o", f"ControlPath={socket}", "-O", "exit", "node",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL, env={"PATH": os.environ.get("PATH", "")},
                start_new_session=True,
            )
        )  # fmt: skip
        try:
            async with asyncio.timeout(MASTER_ENDS_S):
                await process.wait()
        except TimeoutError:
            # A connection that hangs keeps its own minute; the step does not wait for it.
            await end_process(process)
