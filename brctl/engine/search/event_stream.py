"""A search line by line while it runs: `-o ndjson` prints it, the terminal's screen follows it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from brctl import __version__
from brctl.engine.controller.clock import now
from brctl.library.durable_files import private_dir
from brctl.model.localisation import RoundReport
from brctl.view.job.bisect import round_document

TRAILS = "bisects"
"""Event streams in the state directory; whole searches are in `bisect_store.FOLDER`."""


class EventStream:
    """Numbered lines, to every stream, each as soon as it is known."""

    def __init__(self, streams: Sequence[TextIO]) -> None:
        self._streams = streams
        self._number = 0

    def begin(self, nodes: Sequence[str], runner: str) -> None:
        self._write({"type": "version", "events": "1.0", "brctl": __version__})
        self._write({"type": "bisect.start", "nodes": list(nodes), "runner": runner})

    def add(self, report: RoundReport) -> None:
        """One round that has ended."""
        self._write({"type": "round", **round_document(report)})

    def end(self, document: Mapping[str, object], exit_code: int) -> None:
        rest = {key: value for key, value in document.items() if key != "round_log"}
        self._write({"type": "result", **rest})
        self._write({"type": "end", "exit_code": exit_code, "result": document["ended"]})

    def _write(self, line: Mapping[str, object]) -> None:
        self._number += 1
        numbered = {"type": line["type"], "seq": self._number, **line}
        text = json.dumps(numbered, allow_nan=False) + "\n"
        for stream in self._streams:
            stream.write(text)
            stream.flush()


@contextmanager
def open_event_stream(state_dir: Path | None, also: Sequence[TextIO] = ()) -> Iterator[EventStream]:
    """Write to the state directory where there is one, and to other streams."""
    if state_dir is None:
        yield EventStream(also)
        return
    folder = state_dir / TRAILS
    private_dir(folder)
    name = f"B-{now():%Y%m%dT%H%M%S%f}"[:-3]
    with (folder / f"{name}.ndjson").open("w", encoding="utf-8") as stream:
        yield EventStream((stream, *also))
