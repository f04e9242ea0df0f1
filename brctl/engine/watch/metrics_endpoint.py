"""A watcher's metrics over HTTP: read only, in threads of its own, never in the way of a look."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING

from brctl.engine.controller.bounded_server import CLIENT_TIMEOUT_S, BoundedServer
from brctl.engine.controller.clock import now
from brctl.model.errors import UnavailableError
from brctl.view.fleet.prometheus import METRICS, Sample

if TYPE_CHECKING:
    from collections.abc import Callable

    from prometheus_client import CollectorRegistry, Metric

POLL_S = 0.2


@dataclass(slots=True, eq=False)
class WatchCollector:
    """The newest samples, reckoned when they are asked for: a loop that stands still looks so.

    Attributes:
        samples: Of a moment; None until the watcher has told anything.
    """

    samples: "Callable[[datetime], list[Sample]] | None" = None

    def collect(self) -> "Iterator[Metric]":
        """What prometheus-client asks of a collector."""
        from prometheus_client import Metric

        found = self.samples(now()) if self.samples is not None else []
        for name in dict.fromkeys(name for name, _, _ in found):
            kind, text = METRICS[name]
            metric = Metric(name, text, kind)
            for labels, value in ((own, v) for other, own, v in found if other == name):
                metric.add_sample(name, dict(labels), value)
            yield metric


class MetricsEndpoint:
    """`GET /metrics` on one address, from `open` until `close`."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.collector = WatchCollector()
        self._address, self._registry = address, _registry(self.collector)
        self._server: _MetricsServer | None = None

    @property
    def port(self) -> int:
        """The one that is listened on; 0 while none is."""
        return int(self._server.server_address[1]) if self._server else 0

    def open(self) -> None:
        """Serve, unless it does so already.

        Raises:
            OSError: The address cannot be listened on now.
        """
        if self._server is None:
            self._server = _MetricsServer(self._address, self._registry)
            threading.Thread(target=self._server.serve_forever, args=(POLL_S,), daemon=True).start()

    def close(self) -> None:
        """End it; clients that are being answered are not waited for."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            self._server = None


def _registry(collector: WatchCollector) -> "CollectorRegistry":
    """The watcher's own series, and what its process costs this machine."""
    try:
        from prometheus_client import CollectorRegistry, ProcessCollector
    except ImportError as exc:
        raise UnavailableError(
            "--listen: prometheus-client is not installed",
            hint="pip install 'brctl[metrics]', or --prom FILE for the node exporter",
        ) from exc
    registry = CollectorRegistry()
    registry.register(collector)
    ProcessCollector(registry=registry)
    return registry


class _MetricsServer(BoundedServer):
    # A client that hangs must not be waited for when the watcher ends.
    block_on_close = False

    def __init__(self, address: tuple[str, int], registry: "CollectorRegistry") -> None:
        self.registry = registry
        super().__init__(address, _Scrape)


class _Scrape(BaseHTTPRequestHandler):
    server: _MetricsServer
    timeout = CLIENT_TIMEOUT_S
    server_version, sys_version = "brctl", ""

    def do_GET(self) -> None:
        """The metrics in the form that was asked for; nothing else is here."""
        from prometheus_client.exposition import choose_encoder

        self.server.has_read(self.connection)
        self.close_connection = True
        if self.path.partition("?")[0] != "/metrics":
            self.send_error(404, "only /metrics is here")
            return
        encode, kind = choose_encoder(self.headers.get("Accept") or "")
        raw = encode(self.server.registry)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are not worth a line each."""
