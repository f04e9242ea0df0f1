"""What came back through `kubectl exec`: the command's words, kubectl's words, and what they mean.

kubectl's own exit status is not believed: when the connection to a pod is cut, it may end with 0
as if the command had. The command's status travels on stderr behind a mark of our own, and what
lacks that mark did not end.
"""

import re

from brctl.model.command import Outcome

# The command is a process of its own, so that no word is a builtin of the shell; its stdin is the
# shell's. A beat's sleep holds no stream open, or the end of the command would wait for it.
MARK_AND_RUN = r'''beat=$1; shift; echo "$0" >&2
(while sleep "$beat" 2>&-; do printf '\n%s .\n' "$0" >&2; done) </dev/null >/dev/null &
(exec "$@"); s=$?; printf '\n%s %s\n' "$0" "$s" >&2; kill "$!"; exit "$s"'''
MARK_AND_HOLD = r'''echo "$0" >&2; (exec "$@"); s=$?; printf '\n%s %s\n' "$0" "$s" >&2; exit "$s"'''
"""The same for a command that is held for days: it has a heartbeat of its own."""

_BEATS = 10
"""Within a command's deadline, where that is no longer than some minutes."""

_SHORTEST_BEAT_S, _LONGEST_BEAT_S = 0.2, 10.0
"""The last sleep outlives its command."""

_MISSED_BEATS = 3
_SHORTEST_SILENCE_S = 3.0
"""A node under load sends its beats late."""

# kubectl 1.20 to 1.33, in the order they are looked for: the kubelet's ways before the server's.
MEANINGS: tuple[tuple[str, Outcome], ...] = (
    (r"dialing backend.*connection refused", Outcome.REFUSED),
    (r"dialing backend.*(no route to host|network is unreachable|no such host)",
     Outcome.UNREACHABLE),
    (r"dialing backend.*(time|deadline)", Outcome.CONNECT_TIMED_OUT),
    (r"\(Forbidden\)|\(Unauthorized\)|must be logged in", Outcome.AUTHENTICATION_FAILED),
)  # fmt: skip
_NOTHING_NEW = re.compile(r"command terminated with exit code")
_WORDS_LIMIT = 200


def beat_s(deadline_s: float) -> float:
    """Seconds between two beats; whole ones where that is possible, as any `sleep` knows them."""
    seconds = min(max(deadline_s / _BEATS, _SHORTEST_BEAT_S), _LONGEST_BEAT_S)
    return round(seconds) if seconds >= 1 else seconds


def late(deadline_s: float, silent_s: float) -> tuple[Outcome, str]:
    """What became of a command that did not end in time, by how long nothing was heard of it."""
    if silent_s < max(_MISSED_BEATS * beat_s(deadline_s), _SHORTEST_SILENCE_S):
        return Outcome.COMMAND_TIMED_OUT, f"no end within {deadline_s:g} s"
    why = f"nothing came through the connection for the last {silent_s:.0f} s"
    return Outcome.NOT_AVAILABLE, f"no end within {deadline_s:g} s; {why}"


def split_stderr(raw: bytes, mark: bytes) -> tuple[bytes, int | None, str]:
    """The command's stderr, its exit status or None when it did not end, and kubectl's words."""
    before, began, rest = raw.replace(b"\n" + mark + b" .\n", b"").partition(mark + b"\n")
    if not began:
        return b"", None, _text(raw)
    own, ended, tail = rest.rpartition(b"\n" + mark + b" ")
    status, _, after = tail.partition(b"\n")
    if ended and status.isdigit() and len(status) <= 3:
        return own, int(status), _text(before + after)
    return rest, None, _text(before + rest)


def meaning(words: str) -> tuple[Outcome, str]:
    """What became of a command that did not begin.

    What nobody knows is about the pod or the way to it, and says nothing of the node's health.
    """
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    lines = [line for line in lines if not _NOTHING_NEW.search(line)] or lines
    for pattern, outcome in MEANINGS:
        found = next((line for line in lines if re.search(pattern, line)), None)
        if found is not None:
            return outcome, found[-_WORDS_LIMIT:]
    last = lines[-1][-_WORDS_LIMIT:] if lines else "kubectl said nothing"
    return Outcome.NOT_AVAILABLE, last


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")
