"""One rank's stacks at one moment, normalised so that equal waits compare equal."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

FRAME_LIMIT = 64
"""Frames kept of one stack: deeper ones are recursion, not difference."""

NAME_LIMIT = 1000
LINE_LIMIT = 2000
"""Names of templates are long, but those of attackers longer; the patterns here are not linear."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
_CLONE = re.compile(r"\.(?:constprop|isra|part|cold|lto_priv)\.\d+$")
_TEMPLATE = re.compile(r"<[^<>]*>")
_TEXT_FRAME = re.compile(r"^\s+(?P<name>[^(]+?) \((?P<file>[^():]+)(?::\d+)?\)\s*$")
_TEXT_THREAD = re.compile(r'^Thread \S+ \((?P<state>[^)]*)\)(?:: "(?P<name>[^"]*)")?')

STOPPED = "(stopped by a signal)"
UNINTERRUPTIBLE = "(waits in the kernel: {})"


@dataclass(frozen=True, slots=True)
class RankStack:
    """What one rank answered.

    Attributes:
        stack: Innermost frame first, `file:function`; empty when the rank did not answer.
        state: Its process state in the kernel's letter, "" when not known.
        kernel_wait: The kernel function it waits in, "" when none or not known.
        own_frame: The innermost frame outside Python's own library, where it is the job's own code;
            "" where it is a package's, or not known.
        note: Why there is no stack.
        node: Where it was captured; "" when the file does not say.
    """

    rank: int
    stack: tuple[str, ...]
    state: str = ""
    kernel_wait: str = ""
    note: str = ""
    own_frame: str = ""
    node: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What is compared: a stopped or blocked process stands elsewhere whatever its stack."""
        if self.state in ("T", "t"):
            return (STOPPED, *self.stack)
        if self.state == "D":
            return (UNINTERRUPTIBLE.format(self.kernel_wait or "unknown"), *self.stack)
        return self.stack


def normalise(frames: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Frames of (function, file) without what differs between equal waits: addresses, line numbers.

    Examples:
        >>> normalise([("all_reduce", "/opt/venv/torch/distributed/distributed_c10d.py")])
        ('distributed_c10d.py:all_reduce',)
    """
    return tuple(_frame(name, file) for name, file in frames[:FRAME_LIMIT])


def _frame(name: str, file: str) -> str:
    plain = _CLONE.sub("", _ADDRESS.sub("", name[:NAME_LIMIT].strip()))
    while (
        "<" in plain
        and (shorter := _TEMPLATE.sub("", plain)) != plain
        and not plain.startswith("<")
    ):
        plain = shorter
    base = file.rsplit("/", 1)[-1]
    return f"{base}:{plain}"[:200]


def read_threads(threads: object) -> tuple[str, ...]:
    """The main thread's stack in py-spy's JSON: a list of threads with frames, innermost first."""
    return read_frames(_main_frames(threads))


def read_frames(frames: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Frames of py-spy's JSON as they are compared."""
    return normalise([_pair(frame) for frame in frames])


def read_place(frames: Iterable[Mapping[str, object]]) -> str:
    """The innermost frame of the job's own code, `read_shard (data.py:91)`; "" if none is."""
    own = next((frame for frame in frames if frame.get("place") == "job"), None)
    if own is None:
        return ""
    file, _, name = _frame(*_pair(own)).partition(":")
    line = own.get("line")
    return f"{name} ({file}:{line})" if type(line) is int else f"{name} ({file})"


def read_own_frame(threads: object) -> str:
    """The job's own code that the main thread stands in, with no package's code inside of it."""
    frames = (f for f in _main_frames(threads) if f.get("place") != "python")
    innermost = next(frames, {})
    return _frame(*_pair(innermost)) if innermost.get("place") == "job" else ""


def _main_frames(threads: object) -> list[Mapping[str, object]]:
    rows = [t for t in threads if isinstance(t, Mapping)] if isinstance(threads, list) else []
    if not rows:
        return []
    main = next((t for t in rows if t.get("thread_name") == "MainThread"), rows[0])
    frames = main.get("frames")
    return [f for f in (frames if isinstance(frames, list) else []) if isinstance(f, Mapping)]


def _pair(frame: Mapping[str, object]) -> tuple[str, str]:
    file = frame.get("short_filename") or frame.get("filename") or ""
    return str(frame.get("name", "")), str(file)


def read_text(text: str) -> tuple[str, ...]:
    """The main thread's stack in py-spy's text."""
    threads: dict[str, list[tuple[str, str]]] = {}
    name = ""
    for line in (full[:LINE_LIMIT] for full in text.splitlines()[:100_000]):
        head = _TEXT_THREAD.match(line)
        if head:
            name = head["name"] or line.strip()
            if name in threads:
                break
            threads[name] = []
            continue
        frame = _TEXT_FRAME.match(line)
        if frame and name:
            threads[name].append((frame["name"], frame["file"]))
    chosen = threads.get("MainThread") or next((f for f in threads.values() if f), [])
    return normalise(chosen)
