"""A watcher's metrics over HTTP: what is told, to whom, and that no client holds anything up."""

import contextlib
import http.client
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial

import pytest

from brctl.engine.controller.bounded_server import CLIENTS
from brctl.engine.controller.clock import now
from brctl.engine.watch.metrics_endpoint import MetricsEndpoint
from brctl.model.units import rfc3339
from brctl.model.watch.state import Suspicion, WatchState
from brctl.view.watch.metrics import watch_samples
from tests.timeouts import TIMEOUT_S


@contextlib.contextmanager
def serving(told_at: datetime) -> Iterator[MetricsEndpoint]:
    """A watcher that told its state at a moment, and serves it."""
    endpoint = MetricsEndpoint(("127.0.0.1", 0))
    suspicion = Suspicion("gpu", "n3", told_at, 7, "a GPU is lost")
    state = WatchState(told_at, suspicions={suspicion.key: suspicion})
    status = {"at": rfc3339(told_at), "nodes": 8, "talking": 7, "cpu_percent_a_node": 0.4}
    endpoint.collector.samples = partial(watch_samples, status, state, "", 'pr"od')
    endpoint.open()
    try:
        yield endpoint
    finally:
        endpoint.close()


def asked(port: int, path: str = "/metrics", verb: str = "GET") -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    with contextlib.closing(connection):
        connection.request(verb, path)
        response = connection.getresponse()
        return response.status, response.read().decode()


def test_a_scrape_tells_what_the_watcher_told_and_nothing_else_is_there() -> None:
    with serving(now()) as endpoint:
        status, text = asked(endpoint.port)
        assert status == 200
        lines = text.splitlines()
        for line in (
            'brctl_watch_up{context="pr\\"od"} 1.0',
            'brctl_watch_suspicions{context="pr\\"od",rule="gpu"} 1.0',
            'brctl_watch_node_cpu_ratio{context="pr\\"od"} 0.004',
            "# TYPE brctl_watch_up gauge",
        ):
            assert line in lines
        assert "process_resident_memory_bytes" in text
        assert asked(endpoint.port, "/../etc/passwd")[0] == 404
        assert asked(endpoint.port, verb="POST")[0] == 501


def test_a_watcher_that_stands_still_is_down_at_the_next_scrape() -> None:
    """Its last word is read with the clock of the scrape, not with the one it was told at."""
    with serving(now() - timedelta(minutes=5)) as endpoint:
        assert 'brctl_watch_up{context="pr\\"od"} 0.0' in asked(endpoint.port)[1].splitlines()


def test_before_anything_was_told_a_scrape_is_empty_and_no_error() -> None:
    endpoint = MetricsEndpoint(("127.0.0.1", 0))
    endpoint.open()
    try:
        status, text = asked(endpoint.port)
        assert (status, "brctl_watch" in text) == (200, False)
    finally:
        endpoint.close()


def test_clients_that_say_nothing_keep_no_scrape_out_and_no_watcher_from_ending() -> None:
    with contextlib.ExitStack() as idle, serving(now()) as endpoint:
        for _ in range(2 * CLIENTS):
            idle.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
        assert asked(endpoint.port)[0] == 200
        endpoint.close()


def test_an_address_that_is_taken_is_an_error_to_try_again_and_an_open_one_stays_open() -> None:
    with serving(now()) as endpoint:
        other = MetricsEndpoint(("127.0.0.1", endpoint.port))
        with pytest.raises(OSError, match="in use"):
            other.open()
        assert other.port == 0
        before = endpoint.port
        endpoint.open()
        assert endpoint.port == before
