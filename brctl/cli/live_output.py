"""What `brctl run` and `brctl cp` write before all nodes have answered."""

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from brctl.engine.controller.arriving import ArrivingFile
from brctl.model.command import CommandResult
from brctl.view.gathered import LiveLines, answer_document, missing_document

OnOutput = Callable[[bytes, bool], None]


def counter() -> Callable[[int, int], None] | None:
    """Writes `done/total` over itself on a terminal's stderr; None when nobody watches."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        ending = "\r\x1b[K" if done == total else ""
        sys.stderr.write(f"\r{done}/{total} nodes{ending}")
        sys.stderr.flush()

    return show


class Counted:
    """How many nodes have answered, for whoever sits at a terminal; their words come at the end.

    Attributes:
        stop: Ends the command.
        broken: Why it was ended: whoever read what we write has gone.
    """

    def __init__(self, total: int) -> None:
        self.stop: Callable[[], object] = lambda: None
        self.broken: OSError | None = None
        self._total, self._done = total, 0
        self._show = counter()

    def on_answer(self, _answer: CommandResult) -> None:
        """A node is done."""
        self._done += 1
        if self._show:
            self._show(self._done, self._total)

    def on_output(self, _node: str) -> OnOutput | None:
        """Called with each piece of a node's output; None keeps that for the end."""
        return None

    def _put(self, lines: Iterable[str]) -> None:
        if self.broken is not None:
            return
        try:
            sys.stdout.write("".join(f"{line}\n" for line in lines))
            sys.stdout.flush()
        except OSError as error:
            # Raised in here it would be the transport's, and look like a fault of the node.
            self.broken = error
            self.stop()


class EachAnswer(Counted):
    """Each node's answer as one JSON object, as soon as it has ended."""

    def on_answer(self, answer: CommandResult) -> None:
        super().on_answer(answer)
        self._put([json.dumps(answer_document(answer))])

    def end(self, missing: Iterable[str]) -> None:
        """Nodes that had not answered when the command was ended: a reader counts them, too."""
        self._put(json.dumps(missing_document(node)) for node in missing)


class EachLine(Counted):
    """Each line under its node's name as it comes."""

    def __init__(self, total: int) -> None:
        super().__init__(total)
        self._lines: dict[str, LiveLines] = {}

    def on_answer(self, answer: CommandResult) -> None:
        self._put(self._of(answer.node).end(answer))

    def on_output(self, node: str) -> OnOutput:
        lines = self._of(node)
        return lambda data, is_stderr: self._put(lines.feed(data, is_stderr))

    def _of(self, node: str) -> LiveLines:
        return self._lines.setdefault(node, LiveLines(node))


class Fetched(Counted):
    """Files of nodes, written below a folder while they come.

    Attributes:
        answers: What each node's file came to.
    """

    def __init__(self, total: int, folder: Path, name: str) -> None:
        super().__init__(total)
        self.answers: dict[str, CommandResult] = {}
        self._folder, self._name = folder, name
        self._files: dict[str, ArrivingFile] = {}

    def on_output(self, node: str) -> OnOutput:
        file = self._files[node] = ArrivingFile(self._folder / node / self._name)
        return lambda data, is_stderr: self._guarded(lambda: file.take(data, is_stderr))

    def on_answer(self, answer: CommandResult) -> None:
        super().on_answer(answer)
        file = self._files.get(answer.node)
        if file is not None:
            self._guarded(lambda: self._ended(answer, file))

    def _ended(self, answer: CommandResult, file: ArrivingFile) -> None:
        """From here on nothing is left of it to take away."""
        self.answers[answer.node] = file.end(answer)
        del self._files[answer.node]

    def close(self) -> None:
        """Leave nothing that is not whole."""
        for file in self._files.values():
            file.give_up()

    def _guarded(self, write: Callable[[], object]) -> None:
        """An error of our disk ends the command; the transport would take it for the node's."""
        if self.broken is not None:
            return
        try:
            write()
        except OSError as error:
            self.broken = error
            self.stop()
