"""`kubectl --raw` to the stand-in without the program: it costs more to start than it does.

That the program does the same is what the contract of backends and `tests/fanout/test_kubectl.py`
prove. What is no `--raw`, and what no server answers, goes to the real one.
"""

import asyncio
import json
import os
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlsplit

from brctl.fanout.kubernetes.kubectl import REQUEST_TIMEOUT, Kubectl
from brctl.model.command import CommandResult, Outcome

_METHODS = {"get": "GET", "replace": "PUT", "create": "POST", "delete": "DELETE"}
_REFUSED_FROM = 400


class RawRequests(Kubectl):
    """As its base, with an answer of the server as kubectl would print it."""

    async def _call(self, *argv: str, stdin: bytes = b"") -> CommandResult:
        if "--raw" not in argv:
            return await super()._call(*argv, stdin=stdin)
        path = argv[argv.index("--raw") + 1]
        try:
            status, body = await asyncio.to_thread(ask, _METHODS[argv[0]], path, stdin)
            return printed(status, body)
        except (ConnectionError, json.JSONDecodeError):
            # Nobody is there, or is overloaded and says so in plain text: kubectl comes again.
            return await super()._call(*argv, stdin=stdin)


def ask(method: str, path: str, body: bytes) -> tuple[int, bytes]:
    """One request of the server that the configuration names."""
    config = json.loads(Path(os.environ["KUBECONFIG"]).read_text())
    server = urlsplit(config["clusters"][0]["cluster"]["server"])
    connection = HTTPConnection(server.netloc, timeout=float(REQUEST_TIMEOUT.rstrip("s")))
    try:
        headers = {"User-Agent": "kubectl/raw", "Content-Type": "application/json"}
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def printed(status: int, body: bytes) -> CommandResult:
    """What kubectl makes of an answer."""
    found = json.loads(body)
    if status < _REFUSED_FROM:
        return CommandResult("localhost", Outcome.ANSWERED, 0, body, b"", 0.0)
    words = f"Error from server ({found['reason']}): {found['message']}\n".encode()
    return CommandResult("localhost", Outcome.ANSWERED, 1, b"", words, 0.0)
