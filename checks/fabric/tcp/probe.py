"""RUNS ON THE NODE. Reads what the kernel knows of its TCP connections; sends nothing."""

import json
import os
import signal
import socket
import struct
import sys
import time


# Every probe is one file, so this block is the same in all of them; a test compares.
class Readings(object):
    """Values read so far, and why others are missing."""

    def __init__(self):
        self.rows = []
        self.notes = []

    def add(self, name, subject, value):
        self.rows.append({"name": name, "subject": subject, "value": value})

    def note(self, text):
        self.notes.append(str(text)[:400])

    def read(self, name, subject, call, *arguments):
        """Add what the call returns and return it; a failure becomes a note, never a number."""
        try:
            value = call(*arguments)
        except Exception as exc:
            unsupported = getattr(exc, "value", None) in (3, 13)  # not supported by part, by driver
            shape = "not supported: %s %s" if unsupported else "%s %s: %s"
            self.note(shape % ((name, subject) if unsupported else (name, subject, exc)))
            return None
        if isinstance(value, bytes):
            value = value.decode("utf-8", "replace")
        self.add(name, subject, value)
        return value


class OutOfTime(BaseException):
    """The probe's own deadline; no `except Exception` may catch it as a failed reading."""


def out_of_time(signum, frame):
    raise OutOfTime()


def main(measure):
    """Read parameters, measure within the deadline, print what was read so far whatever happens."""
    parameters = json.loads(sys.stdin.read() or "{}")
    readings = Readings()
    status = 0
    signal.signal(signal.SIGALRM, out_of_time)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, float(parameters.get("deadline_s", 10)) * 0.9))
    try:
        status = measure(readings, parameters) or 0
    except OutOfTime:
        readings.note("deadline_s reached")
        status = 1
    except Exception as exc:
        readings.note("%s: %s" % (type(exc).__name__, exc))
        status = 1
    signal.setitimer(signal.ITIMER_REAL, 0)
    sys.stdout.write(json.dumps({"measurements": readings.rows, "notes": readings.notes}))
    return status


SAMPLE_S = 0.4
RECENT_MS = 60000
PEERS_KEPT = 64
SSH_PORT = 22
ANSWER_BYTES = 1 << 18

NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY = 4, 20
REQUEST_DUMP = 0x301
DONE, ERROR = 3, 2
ESTABLISHED, CONNECTING, INFO = 1, 2, 2
STATES = 1 << ESTABLISHED | 1 << CONNECTING
MESSAGE = struct.Struct("=IHHII")
HEAD_BYTES = 72
# linux/tcp.h, struct tcp_info: what is read of it and where it lies; older kernels end earlier.
FIELDS = {
    "state": (0, "=B"), "timeouts": (2, "=B"), "unacked": (24, "=I"), "last_sent_ms": (44, "=I"),
    "last_received_ms": (52, "=I"), "pmtu": (60, "=I"), "rtt_us": (68, "=I"),
    "rttvar_us": (72, "=I"), "retransmits": (100, "=I"), "segments": (156, "=I"),
    "busy_us": (168, "=Q"), "peer_full_us": (176, "=Q"), "duplicates": (216, "=I"),
}  # fmt: skip


def connections():
    """TCP connections of this network namespace, standing or being made, as sock_diag tells."""
    found = []
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG) as link:
        link.settimeout(2.0)
        for family in (socket.AF_INET, socket.AF_INET6):
            wanted = struct.pack("=BBBxI48x", family, socket.IPPROTO_TCP, 1 << (INFO - 1), STATES)
            size = MESSAGE.size + len(wanted)
            link.send(MESSAGE.pack(size, SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 1, 0) + wanted)
            found.extend(answers(link))
    return found


def answers(link):
    """The connections of one dump."""
    while True:
        data = link.recv(ANSWER_BYTES)
        while len(data) >= MESSAGE.size:
            size, kind, _, _, _ = MESSAGE.unpack_from(data)
            if kind == DONE or size < MESSAGE.size:
                return
            if kind == ERROR:
                code = struct.unpack_from("=i", data, MESSAGE.size)[0]
                raise OSError(-code, os.strerror(-code))
            connection = read_connection(data[MESSAGE.size : size])
            if connection is not None:
                yield connection
            data = data[(size + 3) & ~3 :]


def read_connection(message):
    """One connection as a dict; None where the kernel told nothing of it."""
    family = message[0]
    at = HEAD_BYTES
    while at + 4 <= len(message):
        size, kind = struct.unpack_from("=HH", message, at)
        if size < 4:
            return None
        if kind == INFO:
            return dict(
                read_info(message[at + 4 : at + size]),
                ports=struct.unpack_from("!HH", message, 4),
                own=address(family, message[8:24]),
                peer=address(family, message[24:40]),
                key=message[4:40] + message[44:52],
            )
        at += (size + 3) & ~3
    return None


def is_of_a_job(connection):
    """Neither inside of this machine nor a login."""
    peer = connection["peer"]
    return SSH_PORT not in connection["ports"] and not peer.startswith("127.") and peer != "::1"


def read_info(info):
    return {
        name: struct.unpack_from(shape, info, offset)[0]
        for name, (offset, shape) in FIELDS.items()
        if offset + struct.calcsize(shape) <= len(info)
    }


def address(family, raw):
    if family == socket.AF_INET:
        return socket.inet_ntop(family, raw[:4])
    text = socket.inet_ntop(socket.AF_INET6, raw)
    return text[7:] if text.startswith("::ffff:") and "." in text else text


def lost(connection):
    """Segments sent again for a reason; what the peer had already was sent again by impatience."""
    return max(0, connection.get("retransmits", 0) - connection.get("duplicates", 0))


def measure(readings, parameters):
    try:
        before = {c["key"]: c for c in connections() if is_of_a_job(c)}
        began = time.monotonic()
        if before:
            time.sleep(SAMPLE_S)
        now = [c for c in connections() if is_of_a_job(c)] if before else []
    except OSError as exc:
        readings.note("sock_diag: %s" % exc)
        return 1
    sample_us = (time.monotonic() - began) * 1e6
    peers = {}
    for connection in now:
        peers.setdefault(connection["peer"], []).append(connection)
    for own in sorted({connection["own"] for connection in now})[:PEERS_KEPT]:
        readings.add("fabric.tcp.own_address", "address:" + own, True)
    busiest = sorted(peers, key=lambda peer: -sum(c.get("segments", 0) for c in peers[peer]))
    if len(busiest) > PEERS_KEPT:
        readings.note("%d more peers were left out" % (len(busiest) - PEERS_KEPT))
    for peer in busiest[:PEERS_KEPT]:
        measure_peer(readings, "peer:" + peer, peers[peer], before, sample_us)
    readings.add("fabric.tcp.peers", "", len(peers))
    return 0


def sending_us(connection):
    """Time with data on its way or waiting for it, without that for which the peer had no room."""
    return connection["busy_us"] - connection["peer_full_us"]


def measure_peer(readings, subject, group, before, sample_us):
    sent = sum(connection.get("segments", 0) for connection in group)
    gone = sum(lost(connection) for connection in group)
    olds = [(connection, before.get(connection["key"])) for connection in group]
    known = [(connection, old) for connection, old in olds if old is not None]
    newly_sent = sum(c.get("segments", 0) - old.get("segments", 0) for c, old in known)
    newly_lost = sum(lost(c) - lost(old) for c, old in known)
    readings.add("fabric.tcp.segments", subject, sent)
    readings.add("fabric.tcp.lost", subject, gone)
    readings.add("fabric.tcp.segments_now", subject, max(0, newly_sent))
    readings.add("fabric.tcp.lost_now", subject, max(0, newly_lost))
    sending = [sending_us(c) - sending_us(old) for c, old in known if "peer_full_us" in old]
    if sending:
        busiest_pct = 100.0 * max(sending) / sample_us
        readings.add("fabric.tcp.busy_pct", subject, max(0.0, min(100.0, busiest_pct)))
    waiting = [c["timeouts"] for c in group if c.get("unacked") or c["state"] == CONNECTING]
    readings.add("fabric.tcp.timeouts_in_a_row", subject, max(waiting) if waiting else 0)
    mtus = [connection["pmtu"] for connection in group if connection.get("pmtu")]
    if mtus:
        readings.add("fabric.tcp.path_mtu", subject, min(mtus))
    standing = [c for c in group if c["state"] == ESTABLISHED]
    used = [c for c in standing if min(c["last_sent_ms"], c["last_received_ms"]) <= RECENT_MS]
    delays = [max(0, c["rtt_us"] - c["rttvar_us"]) for c in used if c.get("rtt_us")]
    if delays:
        readings.add("fabric.tcp.delay_ms", subject, min(delays) / 1000.0)


if __name__ == "__main__":
    sys.exit(main(measure))
