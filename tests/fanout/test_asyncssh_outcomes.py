"""Every exception asyncssh can raise while reaching a node means exactly one outcome."""

import errno
import inspect
import socket
from collections.abc import Iterator

import asyncssh
import pytest

from brctl.fanout.asyncssh.outcomes import (
    COMMAND_OUTCOMES,
    LOGIN_OUTCOMES,
    command_outcome,
    login_outcome,
)
from brctl.model.command import Outcome

NEVER_IN_A_FANOUT = {
    "BreakReceived": "a server's side of a terminal",
    "ChannelListenError": "port forwarding",
    "ConfigParseError": "ssh_config is not read by asyncssh here",
    "KeyEncryptionError": "keys are read once, before the first node",
    "KeyExportError": "no key is written",
    "KeyGenerationError": "no key is made",
    "KeyImportError": "keys are read once, before the first node",
    "ProcessError": "only SSHClientProcess raises it",
    "SignalReceived": "a server's side of a terminal",
    "TerminalSizeChanged": "a server's side of a terminal",
    "TimeoutError": "only SSHClientProcess raises it",
}


def errors_of_asyncssh() -> Iterator[type[Exception]]:
    for _, member in inspect.getmembers(asyncssh, inspect.isclass):
        if issubclass(member, Exception) and not issubclass(member, asyncssh.SFTPError):
            yield member


def test_no_class_of_asyncssh_is_forgotten() -> None:
    """A new asyncssh release cannot bring an error that nobody gave a meaning."""
    named = {kind.__name__ for kind in LOGIN_OUTCOMES} | NEVER_IN_A_FANOUT.keys()
    forgotten = {kind.__name__ for kind in errors_of_asyncssh()} - named
    assert forgotten == set()


@pytest.mark.parametrize("kind", LOGIN_OUTCOMES)
def test_each_class_has_an_outcome_before_and_after_login(kind: type[Exception]) -> None:
    """None falls through the table, whatever its text is."""
    error = kind.__new__(kind)
    assert login_outcome(error)[0] is LOGIN_OUTCOMES[kind]
    if issubclass(kind, asyncssh.Error):
        assert command_outcome(error)[0] in COMMAND_OUTCOMES.values()


def test_a_known_host_with_another_kind_of_key_is_a_mismatch() -> None:
    """Failing to agree on a host key algorithm is not a refusal by the node."""
    error = asyncssh.KeyExchangeFailed("No matching server host key algorithm found")
    assert login_outcome(error)[0] is Outcome.HOST_KEY_MISMATCH


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (OSError(errno.ECONNREFUSED, "refused"), Outcome.REFUSED),
        (OSError(errno.EHOSTUNREACH, "no route"), Outcome.UNREACHABLE),
        (OSError(errno.ETIMEDOUT, "timed out"), Outcome.CONNECT_TIMED_OUT),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), Outcome.UNREACHABLE),
    ],
)
def test_the_socket_layer_is_told_apart(error: OSError, outcome: Outcome) -> None:
    """Refused, unreachable and silent are three different things."""
    assert login_outcome(error)[0] is outcome


def test_our_own_limit_is_not_blamed_on_the_node() -> None:
    """Running out of descriptors here says so."""
    assert "this machine" in login_outcome(OSError(errno.EMFILE, "too many open files"))[1]
