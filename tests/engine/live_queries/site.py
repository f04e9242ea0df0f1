"""A job in memory that stands still, with NCCL in its ranks and what its RAS service answers."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from brctl.model.command import Command, CommandResult
from brctl.model.inventory import Node
from tests.fakes.recorded_site import NODES, RecordedSite
from tests.fakes.transport import answered

Reply = tuple[str, bytes]
"""How asking went, and the answer."""

_WAITS = {"name": "all_reduce", "short_filename": "distributed_c10d.py", "line": 1}
_WORKS = {"name": "fetch", "short_filename": "data.py", "line": 1}


def process_of(node: str) -> dict[str, object]:
    """Facts of the rank on a node, as its probe sends them."""
    return {
        "pid": 100 + NODES.index(node), "pid_inside": 100 + NODES.index(node),
        "addresses": [f"10.0.0.{node[1:]}"], "library": "/lib/libnccl.so.2", "version": "2.30.7",
        "enabled": True, "worker_socket": "", "pipe": "",
        "ras": {"port": 28028, "addresses": ["::1"], "sockets": ["5"], "own": ["5"]},
    }  # fmt: skip


def _packed(body: bytes) -> str:
    return base64.b64encode(body).decode()


class StalledSite(RecordedSite):
    """Four ranks on four nodes.

    Args:
        replies: What RAS answers, in the order of questions.
        facts: Of every rank, where they differ.
        workers: What the worker server of a rank answers, by handler; of the ranks it names.
        age_s: Of the newest step.
    """

    def __init__(
        self,
        state_dir: Path,
        replies: Sequence[Reply] = (),
        *,
        facts: Mapping[str, object] | None = None,
        workers: Mapping[int, Mapping[str, bytes]] | None = None,
        age_s: float = 300.0,
        phase: str = "all_reduce",
        choice: str = "stalled",
    ) -> None:
        super().__init__(state_dir)
        self.replies = list(replies)
        self._facts, self._age_s, self._phase = facts or {}, age_s, phase
        self._workers = workers or {}
        settings = replace(self.controller.settings, nccl_ras=choice)
        self.controller = replace(self.controller, settings=settings)

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Node and form of every question that went to NCCL."""
        prefix = "nccl-ras:"
        return [
            (node, command.asks[0].removeprefix(prefix))
            for node, command in self.transport.commands
            if command.asks and command.asks[0].startswith(prefix)
        ]

    def _answer(self, node: Node, command: Command) -> CommandResult:
        if command.asks == ("worker-server",):
            rank = NODES.index(node.name)
            rows = [
                {"rank": rank, "handler": handler, "outcome": "ok", "body": _packed(body)}
                for handler, body in self._workers.get(rank, {}).items()
            ]
            return answered(node, "".join(json.dumps(row) + "\n" for row in rows).encode())
        if not command.asks or not command.asks[0].startswith("nccl-ras:"):
            return super()._answer(node, command)
        outcome, raw = self.replies.pop(0)
        head = json.dumps({"outcome": outcome, "said": "", "tries": 1}).encode()
        return answered(node, head + b"\n" + raw)

    def _line(self, node: str, check: str, found: Mapping[str, object]) -> dict[str, object]:
        line = super()._line(node, check, {})
        values: dict[str, object] = {}
        if check == "job.ranks":
            values = {
                "job.rank.alive": True, "job.rank.process_state": "S", "job.rank.step": 100,
                "job.rank.phase": self._phase, "job.rank.phase_age_s": self._age_s,
                "job.rank.progress_age_s": self._age_s,
            }  # fmt: skip
        elif check == "job.stacks":
            thread = {"thread_name": "MainThread", "frames": [_WAITS]}
            values = {
                "job.stack.threads": json.dumps([thread]), "job.stack.state": "S",
                "job.stack.process": json.dumps({**process_of(node), **self._facts}),
            }  # fmt: skip
        if not values:
            return line
        rows = [
            {"name": name, "subject": f"rank:{NODES.index(node)}", "value": value}
            for name, value in values.items()
        ]
        return {**line, "stdout": json.dumps({"measurements": rows, "notes": []})}
