"""Names looked up in threads that nobody waits for.

A lookup cannot be interrupted: with name servers that do not answer it takes the C library up to
minutes, long after its node's deadline. The loop's own threads would hold up the end of the program
for that long (asyncio waits 300 s for them, the interpreter for ever); daemon threads do not.
"""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence

LOOKUPS = 64
"""At once, as many as nodes are asked at once; a slow name server holds up nobody but its own."""

Address = tuple[int, tuple[object, ...]]
"""A socket's family and where it connects to."""


class Resolver:
    """Looks names up beside one event loop; more than `LOOKUPS` wait for their turn."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(LOOKUPS)

    async def addresses(self, host: str, port: int) -> Sequence[Address]:
        """The socket addresses of a name; a numeric IPv4 address costs no thread.

        Raises:
            OSError: The name has none, or nobody can say.
        """
        try:
            socket.inet_pton(socket.AF_INET, host)
        except OSError:
            pass
        else:
            return ((socket.AF_INET, (host, port)),)
        loop = asyncio.get_running_loop()
        await self._turns.acquire()
        answer: asyncio.Future[Sequence[Address]] = loop.create_future()
        # The turn is the thread's: a lookup goes on after the caller's deadline.
        answered = _Answered(loop, answer, self._turns)
        threading.Thread(target=answered.look_up, args=(host, port), daemon=True).start()
        return await answer


class _Answered:
    """What a thread leaves behind, wherever its loop is by then."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: asyncio.Future[Sequence[Address]],
        turns: asyncio.Semaphore,
    ) -> None:
        self._loop = loop
        self._answer = answer
        self._turns = turns

    def look_up(self, host: str, port: int) -> None:
        found: Sequence[Address] | OSError
        try:
            listed = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = tuple((family, address) for family, _, _, _, address in listed)
        except OSError as exc:
            found = exc
        except UnicodeError as exc:
            found = socket.gaierror(socket.EAI_NONAME, str(exc))
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants it any more
            self._loop.call_soon_threadsafe(self._settle, found)

    def _settle(self, found: Sequence[Address] | OSError) -> None:
        self._turns.release()
        if self._answer.done():
            return
        if isinstance(found, OSError):
            self._answer.set_exception(found)
        else:
            self._answer.set_result(found)
