"""An HTTP server for programs: bounded in time and in clients, whatever they do."""

import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from typing import Any

CLIENTS = 16
CLIENT_TIMEOUT_S = 10.0
PLACE_TIMEOUT_S = 1.0
"""A thread whose connection was cut ends within this, or the new client comes again."""


class BoundedServer(ThreadingHTTPServer):
    """Serves until `shutdown`.

    Args:
        address: Host and port to listen on.
        handler: What answers one client.
    """

    daemon_threads = True
    # The default of 5 makes a burst of connections wait a second each for the next SYN.
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        self._slots = threading.BoundedSemaphore(CLIENTS)
        self._reading: dict[int, socket.socket] = {}
        self._lock = threading.Lock()
        super().__init__(address, handler)

    def server_bind(self) -> None:
        """Bind, without the look-up of our own name that a dead name server holds up for long."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        """Give a client a place; the one that has talked longest without an end loses its own.

        So connections that say nothing keep nobody out, and who has something to say is heard.
        """
        if not self._slots.acquire(blocking=False):
            self._hang_up_on_slowest()
            if not self._slots.acquire(timeout=PLACE_TIMEOUT_S):
                self.shutdown_request(request)
                return
        with self._lock:
            self._reading[id(request)] = request
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One client, ended when its time is up, however slowly it talks."""
        timer = threading.Timer(CLIENT_TIMEOUT_S, _hang_up, [request])
        timer.daemon = True
        timer.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            timer.cancel()
            self.has_read(request)
            self._slots.release()

    def has_read(self, request: Any) -> None:
        """The client's body is here: from now on we are the one who takes time."""
        with self._lock:
            self._reading.pop(id(request), None)

    def _hang_up_on_slowest(self) -> None:
        with self._lock:
            oldest = next(iter(self._reading), None)
            request = self._reading.pop(oldest) if oldest is not None else None
        if request is not None:
            _hang_up(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that leaves in the middle is nothing to tell."""


def _hang_up(request: socket.socket) -> None:
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
