"""One POST, whatever the server does: hang, drip, fail, flood, redirect, close, pretend."""

import datetime
import ipaddress
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from brctl.notify.http import LIMIT_BYTES, DeliveryError, Post, deliver
from tests.fakes.http_sink import CLOSE, DRIP, HANG, HttpSink, Reply, http_sink
from tests.timeouts import TIMEOUT_S


@pytest.fixture
def server() -> Iterator[HttpSink]:
    with http_sink() as sink:
        yield sink


def send(server: HttpSink, within_s: float = TIMEOUT_S, ca_file: Path | None = None) -> int:
    post = Post(f"{server.url}/path-that-is-secret", b'{"a": 1}', ca_file=ca_file)
    return deliver(post, time.monotonic() + within_s).status


def test_what_is_taken_is_sent_once(server: HttpSink) -> None:
    assert send(server) == 200
    assert [r.json for r in server.requests] == [{"a": 1}]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_busy_servers_are_tried_again(server: HttpSink, status: int) -> None:
    server.replies = [Reply(status), Reply(status)]
    assert send(server) == 200
    assert len(server.requests) == 3


def test_a_refusal_is_not_tried_again_and_names_no_path(server: HttpSink) -> None:
    server.always = Reply(403, b"no such token")
    with pytest.raises(DeliveryError, match="answered 403: no such token") as caught:
        send(server)
    assert "secret" not in str(caught.value)
    assert len(server.requests) == 1


def test_a_server_that_asks_for_longer_than_we_have_is_left_alone(server: HttpSink) -> None:
    server.always = Reply(429, headers={"Retry-After": "3600"})
    started = time.monotonic()
    with pytest.raises(DeliveryError, match="429"):
        send(server, within_s=1800.0)
    assert time.monotonic() - started < TIMEOUT_S
    assert len(server.requests) == 1


def test_a_server_that_never_answers_was_not_told(server: HttpSink) -> None:
    """It would hang for ever; the deadline is ours."""
    server.always = Reply(manner=HANG)
    started = time.monotonic()
    with pytest.raises(DeliveryError, match="did not answer in time"):
        send(server, within_s=0.6)
    assert 0.5 < time.monotonic() - started < TIMEOUT_S


def test_a_server_that_drips_has_answered_and_is_hung_up_on(server: HttpSink) -> None:
    """Its status came, so it was told; every read comes in time, only a hard stop ends it."""
    server.always = Reply(200, b"x" * 100_000, manner=DRIP)
    started = time.monotonic()
    assert send(server, within_s=5.0) == 200
    assert 4.9 < time.monotonic() - started < TIMEOUT_S


def test_ten_megabytes_are_not_read(server: HttpSink) -> None:
    server.always = Reply(200, b"x" * 10_000_000)
    post = Post(f"{server.url}/", b"{}")
    assert len(deliver(post, time.monotonic() + TIMEOUT_S).body) == LIMIT_BYTES


def test_a_server_that_closes_is_tried_again(server: HttpSink) -> None:
    server.replies = [Reply(manner=CLOSE)]
    assert send(server) == 200


def test_nobody_listening_is_an_error_in_time() -> None:
    with http_sink() as gone:
        pass
    started = time.monotonic()
    with pytest.raises(DeliveryError, match=r"127\.0\.0\.1"):
        send(gone, within_s=0.8)
    assert time.monotonic() - started < TIMEOUT_S


def test_a_redirect_to_another_host_is_not_followed(server: HttpSink) -> None:
    """Whoever answers there would get the body and the token."""
    with http_sink() as other:
        for status in (301, 302, 307, 308):
            server.always = Reply(status, headers={"Location": f"{other.url}/x"})
            with pytest.raises(DeliveryError, match="redirects"):
                send(server)
        assert other.requests == []


def test_a_redirect_on_the_same_host_that_keeps_the_method_is_followed(server: HttpSink) -> None:
    server.replies = [Reply(307, headers={"Location": "/there"})]
    assert send(server) == 200
    assert [r.path for r in server.requests] == ["/path-that-is-secret", "/there"]


def test_a_redirect_in_circles_ends(server: HttpSink) -> None:
    server.always = Reply(308, headers={"Location": "/again"})
    with pytest.raises(DeliveryError, match="redirected 3 times"):
        send(server)


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """A server's own certificate, and the file a client must be given to trust it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "sink")])
    now = datetime.datetime.now(datetime.UTC)
    host = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([host]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    own, trusted = folder / "own.pem", folder / "trusted.pem"
    trusted.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    own.write_bytes(
        trusted.read_bytes()
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    return context, trusted


def test_a_certificate_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    """And not sent to; a site's own authority is trusted by naming its file."""
    context, trusted = self_signed(tmp_path)
    with http_sink(context) as server:
        with pytest.raises(DeliveryError, match="certificate is not trusted"):
            send(server)
        assert server.requests == []
        assert send(server, ca_file=trusted) == 200
