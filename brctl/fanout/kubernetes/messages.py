"""What came back through `kubectl exec`: the command's words, kubectl's words, and what they mean.

kubectl's own exit status is not believed: when the connection to a pod is cut, it may end with 0
as if the command had. The command's status travels on stderr behind a mark of our own, and what
lacks that mark did not end.
"""

import re

from brctl.model.command import Outcome

# Its own process, so that no word is a builtin of the shell; its stdin is the shell's.
MARK_AND_RUN = '''echo "$0" >&2; (exec "$@"); s=$?; printf '\\n%s %s\\n' "$0" "$s" >&2; exit "$s"'''

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


def split_stderr(raw: bytes, mark: bytes) -> tuple[bytes, int | None, str]:
    """The command's stderr, its exit status or None when it did not end, and kubectl's words."""
    before, began, rest = raw.partition(mark + b"\n")
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
