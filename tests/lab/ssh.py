"""Log into a lab node the way brctl does: own key, host keys checked, nothing else offered."""

import asyncssh

from brctl.lab.cluster import Lab
from tests.timeouts import TIMEOUT_S


async def connect(
    lab: Lab, name: str, *, login_timeout_s: float = TIMEOUT_S
) -> asyncssh.SSHClientConnection:
    node = lab.nodes[name]
    return await asyncssh.connect(
        node.address,
        node.port,
        known_hosts=str(lab.paths.known_hosts),
        client_keys=[str(lab.paths.client_key)],
        config=[],
        agent_path=None,
        connect_timeout=login_timeout_s,
        login_timeout=login_timeout_s,
    )


async def run(lab: Lab, name: str, command: str, *, stdin: str = "") -> tuple[int | None, str]:
    """Exit status and standard output of a command on a node."""
    async with await connect(lab, name) as connection:
        done = await connection.run(command, input=stdin)
    return done.exit_status, str(done.stdout)
