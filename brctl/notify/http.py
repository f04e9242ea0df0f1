"""One POST over HTTP, hard in every direction: time, size, certificates, redirects.

The server may hang, drip, lie about its length or send ten megabytes. A timer ends the connection
at the deadline, whatever it does, and no more than LIMIT_BYTES of an answer are read.
"""

import contextlib
import http.client
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin, urlsplit

LIMIT_BYTES = 65536
HOPS = 3
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 5.0
RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_SAME_METHOD = frozenset({307, 308})


class DeliveryError(Exception):
    """It could not be told; the text never holds a path or a query, which may be secrets.

    Attributes:
        passing: Trying again may help.
        wait_s: How long the server asked to be left alone.
        ref: What the sink gave before it failed: the main thing was told.
    """

    def __init__(
        self,
        message: str,
        *,
        passing: bool = False,
        wait_s: float = 0.0,
        ref: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.passing = passing
        self.wait_s = wait_s
        self.ref = ref


@dataclass(frozen=True, slots=True)
class Post:
    """What to send, and where."""

    url: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    ca_file: Path | None = None


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """What came back, cut at LIMIT_BYTES."""

    status: int
    body: bytes


def deliver(
    post: Post, deadline: float, pause: Callable[[float], None] = time.sleep
) -> HttpResponse:
    """Post until it is taken, refused for good, or the deadline (`time.monotonic`) is near.

    Raises:
        DeliveryError: It was not taken.
    """
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return _follow(post, deadline)
        except DeliveryError as exc:
            wait_s = max(pause_s, exc.wait_s)
            if not exc.passing or time.monotonic() + wait_s >= deadline:
                raise
        pause(wait_s)
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _follow(post: Post, deadline: float) -> HttpResponse:
    """Redirects that keep the method are followed on the same host, and nowhere else."""
    url = post.url
    for _ in range(HOPS):
        answer, location = _once(post, url, deadline)
        host = urlsplit(url).hostname
        if 200 <= answer.status < 300:
            return answer
        if 300 <= answer.status < 400:
            url = _next_hop(url, location, answer.status)
            continue
        raise DeliveryError(
            f"{host} answered {answer.status}{_quoted(answer)}",
            passing=answer.status in RETRIED,
            wait_s=_seconds(location, answer.status),
        )
    raise DeliveryError(f"{urlsplit(url).hostname} redirected {HOPS} times")


def _next_hop(url: str, location: str, status: int) -> str:
    there, here = urlsplit(urljoin(url, location)), urlsplit(url)
    same = (there.scheme, there.hostname, there.port) == (here.scheme, here.hostname, here.port)
    if status not in _SAME_METHOD or not same:
        raise DeliveryError(
            f"{here.hostname} redirects ({status}) to {there.hostname}, which is not followed"
        )
    return there.geturl()


def _quoted(answer: HttpResponse) -> str:
    text = answer.body[:200].decode("utf-8", "replace").strip()
    return f": {text}" if text and text.isprintable() else ""


def _seconds(text: str, status: int) -> float:
    """Of `Retry-After`; a date or nonsense counts as nothing asked."""
    known = status in RETRIED and text.isdecimal() and len(text) < 6
    return float(text) if known else 0.0


def _once(post: Post, url: str, deadline: float) -> tuple[HttpResponse, str]:
    """One request; also `Location`, or `Retry-After` of an error."""
    parts = urlsplit(url)
    connection = _connection(post, url, deadline)
    path = parts.path or "/"
    try:
        with _ended_at(deadline, connection):
            connection.request(
                "POST", f"{path}?{parts.query}" if parts.query else path, post.body,
                {"User-Agent": "brctl", "Connection": "close", **post.headers},
            )  # fmt: skip
            response = connection.getresponse()
            body = _read(response)
    except (OSError, http.client.HTTPException, ValueError) as exc:
        raise _translated(exc, parts.hostname or "", deadline) from exc
    finally:
        connection.close()
    wanted = "Location" if 300 <= response.status < 400 else "Retry-After"
    return HttpResponse(response.status, body), response.headers.get(wanted) or ""


def _read(response: http.client.HTTPResponse) -> bytes:
    """A body that ends early was still answered: the status counts."""
    try:
        return response.read(LIMIT_BYTES)
    except http.client.IncompleteRead as exc:
        return exc.partial[:LIMIT_BYTES]


def _connection(post: Post, url: str, deadline: float) -> http.client.HTTPConnection:
    parts = urlsplit(url)
    left_s = deadline - time.monotonic()
    if left_s <= 0:
        raise DeliveryError(f"{parts.hostname}: no time left")
    host = parts.hostname or ""
    if parts.scheme == "http":
        return http.client.HTTPConnection(host, parts.port, timeout=left_s)
    try:
        trusted = ssl.create_default_context(cafile=str(post.ca_file) if post.ca_file else None)
    except OSError as exc:
        raise DeliveryError(f"{post.ca_file}: cannot be used as certificates: {exc}") from exc
    return http.client.HTTPSConnection(host, parts.port, timeout=left_s, context=trusted)


@contextmanager
def _ended_at(deadline: float, connection: http.client.HTTPConnection) -> Iterator[None]:
    """Shut the connection at the deadline: a timeout per read would let a dripping server go on."""

    def end() -> None:
        with contextlib.suppress(OSError, AttributeError):
            (connected or connection.sock).shutdown(socket.SHUT_RDWR)

    connected: socket.socket | None = None
    timer = threading.Timer(max(deadline - time.monotonic(), 0.0), end)
    timer.daemon = True
    timer.start()
    try:
        connection.connect()
        # The connection forgets its socket once an answer began; the timer must not.
        connected = connection.sock
        yield
    finally:
        timer.cancel()


def _translated(exc: Exception, host: str, deadline: float) -> DeliveryError:
    if time.monotonic() >= deadline - 0.05 or isinstance(exc, TimeoutError):
        return DeliveryError(f"{host} did not answer in time", passing=True)
    if isinstance(exc, ssl.SSLCertVerificationError):
        return DeliveryError(f"{host}: its certificate is not trusted: {exc.verify_message}")
    if isinstance(exc, socket.gaierror):
        return DeliveryError(f"{host}: no such name", passing=True)
    if isinstance(exc, OSError):
        why = exc.strerror or type(exc).__name__
        return DeliveryError(f"{host}: {why}", passing=not isinstance(exc, ssl.SSLError))
    return DeliveryError(f"{host}: no sound HTTP answer ({type(exc).__name__})", passing=True)
