"""Answers from a recording, and the recorder that makes one: a fleet's bad night, run again."""

import base64
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from brctl.fanout.contract import Expecting, Transport
from brctl.model.answer import Answer, Command, Outcome
from brctl.model.errors import ConfigError
from brctl.model.inventory import Node

_SCHEMA = "brctl.recording/1"


def command_key(command: Command) -> str:
    """What makes two commands the same question: program, arguments and what they read."""
    digest = hashlib.sha256(json.dumps(command.argv).encode())
    digest.update(command.stdin)
    return digest.hexdigest()[:16]


class RecordingTransport:
    """Passes every command on and appends each answer to a file."""

    def __init__(self, inner: Transport, path: Path) -> None:
        self._inner = inner
        self._stream = path.open("a", encoding="utf-8")

    def expect(self, count: int) -> None:
        """So many nodes will be asked next."""
        if isinstance(self._inner, Expecting):
            self._inner.expect(count)

    async def run(self, node: Node, command: Command) -> Answer:
        """Run the command for real and keep its answer."""
        answer = await self._inner.run(node, command)
        line = {"schema": _SCHEMA, "command": command_key(command), **_to_json(answer)}
        self._stream.write(json.dumps(line, sort_keys=True) + "\n")
        self._stream.flush()
        return answer

    async def close(self) -> None:
        """Close the recording and the transport below."""
        self._stream.close()
        await self._inner.close()


class ReplayTransport:
    """Gives recorded answers in the order they were recorded, per node and command.

    Args:
        path: The recording.
        strict: A question that was not recorded is UNREACHABLE when strict; otherwise the
            node's answers are taken in order whatever was asked, because a new release sends new
            probe sources.
    """

    def __init__(self, path: Path, *, strict: bool = True) -> None:
        self._strict = strict
        self._answers: dict[tuple[str, str], list[Answer]] = {}
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            key, answer = _parse_line(line, path, number)
            self._answers.setdefault((answer.node, key if strict else ""), []).append(answer)

    async def run(self, node: Node, command: Command) -> Answer:
        """The next recorded answer; the last one is given again and again."""
        key = command_key(command) if self._strict else ""
        queue = self._answers.get((node.name, key), [])
        if not queue:
            detail = "the recording holds no answer of this node to this command"
            return Answer(node.name, Outcome.UNREACHABLE, None, b"", b"", 0.0, detail)
        return queue.pop(0) if len(queue) > 1 else queue[0]

    async def close(self) -> None:
        """Nothing is open."""


def _to_json(answer: Answer) -> Mapping[str, object]:
    return {
        "node": answer.node,
        "outcome": answer.outcome.value,
        "exit_status": answer.exit_status,
        "stdout": base64.b64encode(answer.stdout).decode(),
        "stderr": base64.b64encode(answer.stderr).decode(),
        "seconds": answer.seconds,
        "detail": answer.detail,
    }


def _parse_line(line: str, path: Path, number: int) -> tuple[str, Answer]:
    try:
        data = json.loads(line)
        if data["schema"] != _SCHEMA:
            raise ConfigError.at(path, number, f"schema {data['schema']!r}, wanted {_SCHEMA!r}")
        return str(data["command"]), Answer(
            node=str(data["node"]),
            outcome=Outcome(data["outcome"]),
            exit_status=data["exit_status"] if isinstance(data["exit_status"], int) else None,
            stdout=base64.b64decode(data["stdout"], validate=True),
            stderr=base64.b64decode(data["stderr"], validate=True),
            seconds=float(data["seconds"]),
            detail=str(data["detail"]),
        )
    except (ValueError, KeyError, TypeError) as exc:
        raise ConfigError.at(path, number, f"not a recorded answer: {exc}") from exc
