"""The real `kubectl`, as the person who runs brctl would run it: paths of the API, no shell.

Credentials are whatever kubectl itself uses; brctl never reads them. Objects travel whole, over
stdin, with the resourceVersion they were read with: the API server refuses to overwrite what
somebody else changed meanwhile. `--raw` means the same to kubectl 1.20 and to today's.
"""

import asyncio
import json
import re
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from brctl.fanout.local import LocalTransport
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import BrctlError, DeniedError, UnavailableError, UnreachableError
from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.model.inventory import Node

Object = dict[str, Any]

HERE = Node("localhost", "127.0.0.1")
REQUEST_TIMEOUT = "15s"
COMMAND_DEADLINE_S = 30.0
OUTPUT_LIMIT_BYTES = 256 << 20
"""A node is 10 to 20 kB of JSON, so 256 MiB hold the largest cluster there is (5,000 nodes)."""

AT_ONCE = 8
RECENT_S = 2.0
"""One look of a command at nodes and jobs is many questions, some of them several times."""

FALLBACK_NAMESPACE = "default"
_REFUSED = re.compile(r"Error from server \((\w+)\): (.*)", re.DOTALL)
_DID_NOT_ANSWER = re.compile(
    r"connection (?:to the server|refused|reset)|unable to connect|i/o timeout|timed? ?out|deadline"
    r" exceeded|no route to host|unreachable|no such host|\bEOF\b|TLS handshake|currently unable",
    re.IGNORECASE,
)
_BUDGET = "disruption budget"
_HEAD = _TAIL = 180
"""Of a long message both ends: the server prints a whole template between object and reason."""

_PERMISSIONS = "`brctl doctor` lists the permissions that are missing"


class ConflictError(UnavailableError):
    """Somebody else changed the object since it was read; read it again."""


class BudgetError(DeniedError):
    """A PodDisruptionBudget does not allow this eviction now."""


class Kubectl:
    """One cluster through kubectl; "" means kubectl's own current context and namespace.

    Attributes:
        argv: How each of its commands begins.
    """

    def __init__(self, context: str = "", namespace: str = "") -> None:
        self.argv = ("kubectl", *(("--context", context) if context else ()))
        self._namespace = namespace
        self._here = LocalTransport()
        self._gate = asyncio.Semaphore(AT_ONCE)
        self._recent: dict[str, tuple[float, asyncio.Future[Object | None]]] = {}

    async def namespace(self) -> str:
        """The namespace of jobs: configured, or that of kubectl's context."""
        if not self._namespace:
            answer = await self._call("config", "view", "--minify", "-o", "jsonpath={..namespace}")
            output = answer.stdout.decode("utf-8", "replace").split()
            self._namespace = output[0] if output and not answer.exit_status else FALLBACK_NAMESPACE
        return self._namespace

    async def get(self, path: str, **query: str) -> Object | None:
        """An object or a list; None when the server has no such thing."""
        try:
            return await self._raw("get", path + (f"?{urlencode(query)}" if query else ""))
        except GoneError:
            return None

    async def recent(self, path: str, **query: str) -> Object | None:
        """As `get`, or what it was a moment ago if nothing was written through here since.

        For looking, never for waiting until something changes; nobody may change what it returns.
        """
        key = f"{path}?{urlencode(query)}"
        at, known = self._recent.get(key, (float("-inf"), None))
        if known is None or known.cancelled() or time.monotonic() - at > RECENT_S:
            known = asyncio.ensure_future(self.get(path, **query))
            self._recent[key] = (time.monotonic(), known)
        try:
            return await asyncio.shield(known)
        except BrctlError:
            self._recent.pop(key, None)
            raise

    async def put(self, path: str, value: Object) -> Object:
        """Replace an object; see the head of this file."""
        return await self._raw("replace", path, value)

    async def post(self, path: str, value: Object) -> Object:
        """Create an object below a path."""
        return await self._raw("create", path, value)

    async def delete(self, path: str, **options: object) -> None:
        """Delete an object; one that is gone already is no error."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        try:
            await self._raw("delete", path, body)
        except GoneError:
            return

    async def can_i(self, verb: str, resource: str, *, everywhere: bool = False) -> bool:
        """Whether the API server would let us, as `kubectl auth can-i` says."""
        name, _, part = resource.partition("/")
        subresource = (f"--subresource={part}",) if part else ()
        scope = ("--all-namespaces",) if everywhere else ("-n", await self.namespace())
        answer = await self._call("auth", "can-i", verb, name, *subresource, *scope)
        output = answer.stdout.decode("utf-8", "replace").strip()
        if output in ("yes", "no") or output.startswith(("yes ", "no ")):
            return output.startswith("yes")
        raise error_of(answer)

    async def _raw(self, verb: str, path: str, value: Object | None = None) -> Object:
        # kubectl 1.20 fetches the whole schema before a `--raw` unless told not to validate.
        validate = ("--validate=false",) if verb in ("replace", "create") else ()
        body = () if value is None else ("-f", "-")
        stdin = b"" if value is None else json.dumps(value).encode()
        try:
            answer = await self._call(verb, *validate, "--raw", path, *body, stdin=stdin)
        finally:
            if verb != "get":
                self._recent.clear()
        if answer.exit_status != 0:
            raise error_of(answer)
        return parse_object(answer.stdout, path)

    async def _call(self, *argv: str, stdin: bytes = b"") -> CommandResult:
        command = Command(
            (*self.argv, f"--request-timeout={REQUEST_TIMEOUT}", *argv),
            stdin=stdin,
            deadline_s=COMMAND_DEADLINE_S,
            output_limit_bytes=OUTPUT_LIMIT_BYTES,
        )
        async with self._gate:
            answer = await self._here.run(HERE, command)
        if answer.outcome is Outcome.COMMAND_TIMED_OUT:
            raise UnreachableError(f"kubectl: {answer.detail}")
        if answer.outcome is not Outcome.ANSWERED or answer.exit_status == 127:
            raise UnavailableError(f"kubectl: {answer.detail or 'cannot be run'}")
        return answer


class GoneError(UnavailableError):
    """The server has no such object, or no such kind of object."""


_KINDS: Mapping[str, type[BrctlError]] = {
    "NotFound": GoneError,
    "Conflict": ConflictError,
    "AlreadyExists": ConflictError,
    "TooManyRequests": UnreachableError,
    "ServiceUnavailable": UnreachableError,
    "Timeout": UnreachableError,
    "ServerTimeout": UnreachableError,
    "Forbidden": DeniedError,
    "Unauthorized": DeniedError,
}


def error_of(answer: CommandResult) -> BrctlError:
    """What went wrong, by the word kubectl puts in brackets."""
    message = answer.stderr.decode("utf-8", "replace").strip()
    refused = _REFUSED.search(message)
    if refused is None:
        kind = _kind_without_word(message)
        return kind(f"kubectl said: {_both_ends(message) or f'exit {answer.exit_status}'}")
    # An overloaded server says 429 too, and no budget has anything to do with it.
    kind = BudgetError if _BUDGET in refused[2] else _KINDS.get(refused[1], UnavailableError)
    hint = _PERMISSIONS if kind is DeniedError else None
    return kind(f"kubectl said: {_both_ends(refused[2])} ({refused[1]})", hint=hint)


def _kind_without_word(message: str) -> type[BrctlError]:
    if "(Unauthorized)" in message:
        return DeniedError
    return UnreachableError if _DID_NOT_ANSWER.search(message) else UnavailableError


def _both_ends(message: str) -> str:
    if len(message) <= _HEAD + _TAIL:
        return message
    return f"{message[:_HEAD]} ... {message[-_TAIL:]}"


def parse_object(stdout: bytes, path: str) -> Object:
    """What kubectl printed, bounded, and in the shape that every object of the API has.

    Raises:
        UnavailableError: It is something else; whoever answers there is no API server of ours.
    """
    try:
        found = read_foreign_json(stdout)
    except ForeignJsonError as exc:
        raise UnavailableError(f"kubectl printed no JSON for {path}: {exc}") from exc
    if not isinstance(found, dict):
        raise UnavailableError(f"kubectl printed no object for {path}")
    items = found.get("items") or ()
    if not isinstance(items, list | tuple) or not all(map(_is_sound, (found, *items))):
        raise UnavailableError(f"kubectl printed for {path} what is no object of the API")
    return found


def _is_sound(item: object) -> bool:
    """Whether the parts that we read of any object have the types that the API gives them.

    What a change was answered (`Status`) is not read.
    """
    if not isinstance(item, dict):
        return False
    if item.get("kind") == "Status":
        return True
    parts = [item.get(key) or {} for key in ("metadata", "spec", "status")]
    if not all(isinstance(part, dict) for part in parts):
        return False
    texts = [parts[0].get(key) or {} for key in ("labels", "annotations")]
    listed = [parts[2].get("conditions") or (), parts[0].get("managedFields") or ()]
    return (
        # A list of kinds has no metadata, and nothing of it is read but its names.
        ("metadata" in item or "resources" in item)
        and all(isinstance(t, dict) and all(isinstance(v, str) for v in t.values()) for t in texts)
        and all(isinstance(r, list | tuple) and all(isinstance(x, dict) for x in r) for r in listed)
    )
