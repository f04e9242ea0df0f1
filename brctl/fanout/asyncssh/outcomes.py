"""Every exception of asyncssh and of the socket layer means exactly one outcome.

One table for logging in, one for what a connection does afterwards; the most specific class
decides. tests/fanout/test_asyncssh_outcomes.py fails when asyncssh grows a class not named here.
"""

import errno
import socket
from collections.abc import Mapping

import asyncssh

from brctl.model.command import Outcome

LOGIN_OUTCOMES: Mapping[type[BaseException], Outcome] = {
    asyncssh.PermissionDenied: Outcome.AUTHENTICATION_FAILED,
    asyncssh.IllegalUserName: Outcome.AUTHENTICATION_FAILED,
    asyncssh.PasswordChangeRequired: Outcome.AUTHENTICATION_FAILED,
    asyncssh.HostKeyNotVerifiable: Outcome.HOST_KEY_MISMATCH,
    # sshd closes connections unasked above MaxStartups and for hosts it denies.
    asyncssh.ConnectionLost: Outcome.REFUSED,
    asyncssh.ServiceNotAvailable: Outcome.REFUSED,
    asyncssh.KeyExchangeFailed: Outcome.REFUSED,
    asyncssh.ProtocolNotSupported: Outcome.REFUSED,
    asyncssh.ProtocolError: Outcome.UNPARSABLE,
    asyncssh.MACError: Outcome.UNPARSABLE,
    asyncssh.CompressionError: Outcome.UNPARSABLE,
    asyncssh.ChannelOpenError: Outcome.UNREACHABLE,  # a jump host could not reach the node
    asyncssh.DisconnectError: Outcome.REFUSED,
    asyncssh.Error: Outcome.REFUSED,
}

COMMAND_OUTCOMES: Mapping[type[BaseException], Outcome] = {
    asyncssh.ChannelOpenError: Outcome.REFUSED,
    asyncssh.ProtocolError: Outcome.UNPARSABLE,
    asyncssh.MACError: Outcome.UNPARSABLE,
    asyncssh.CompressionError: Outcome.UNPARSABLE,
    asyncssh.DisconnectError: Outcome.DIED,
    asyncssh.Error: Outcome.DIED,
}

SOCKET_OUTCOMES: Mapping[int, Outcome] = {
    errno.ECONNREFUSED: Outcome.REFUSED,
    errno.ECONNRESET: Outcome.REFUSED,
    errno.EPIPE: Outcome.REFUSED,
    errno.ECONNABORTED: Outcome.REFUSED,
    errno.ETIMEDOUT: Outcome.CONNECT_TIMED_OUT,
}
"""Any other error number, and a name that does not resolve, is UNREACHABLE."""

_OUR_OWN_LIMITS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.EADDRNOTAVAIL})


def login_outcome(error: BaseException) -> tuple[Outcome, str]:
    """The outcome of a failed connect or login, and one sentence about it."""
    if isinstance(error, OSError):
        return _socket_outcome(error)
    if isinstance(error, asyncssh.KeyExchangeFailed) and "host key" in str(error):
        # known_hosts has only another kind of key for this node than the node offers.
        return Outcome.HOST_KEY_MISMATCH, _detail(error)
    return _most_specific(LOGIN_OUTCOMES, error), _detail(error)


def command_outcome(error: BaseException) -> tuple[Outcome, str]:
    """The outcome of a connection that failed under a command, and one sentence about it."""
    if isinstance(error, OSError):
        return Outcome.DIED, f"connection broke: {error.strerror or error}"
    return _most_specific(COMMAND_OUTCOMES, error), _detail(error)


def _most_specific(table: Mapping[type[BaseException], Outcome], error: BaseException) -> Outcome:
    return next(table[kind] for kind in type(error).__mro__ if kind in table)


def _socket_outcome(error: OSError) -> tuple[Outcome, str]:
    if isinstance(error, socket.gaierror):
        return Outcome.UNREACHABLE, f"name does not resolve: {error.strerror}"
    if error.errno in _OUR_OWN_LIMITS:
        return Outcome.UNREACHABLE, f"this machine, not the node: {error.strerror}"
    outcome = SOCKET_OUTCOMES.get(error.errno or 0, Outcome.UNREACHABLE)
    return outcome, error.strerror or str(error)


def _detail(error: BaseException) -> str:
    text = str(error) or type(error).__name__
    return text.splitlines()[0][:300]
