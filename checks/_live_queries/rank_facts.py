"""RUNS ON THE NODE. What a live query of a rank needs to know before it asks; reads /proc only.

Asking the wrong process, or one whose NCCL is known to crash when asked, hurts a job: which library
a rank has loaded, who listens where, and whose these sockets are is read without a connection.
"""

import glob
import mmap
import os
import re
import socket
import time

from checks._progress.rank_processes import environment_of

RAS_PORT = 28028
LISTENING = "0A"
TABLE_LIMIT = 4 << 20
MAPS_LIMIT = 8 << 20
FDS_LIMIT = 20000
LOG_HEAD_BYTES = 256 << 10
SCAN_LIMIT = 512 << 20
SCAN_PIECE = 8 << 20
SCAN_S = 3.0
VERSIONS_READ = {}
ADDRESSES_KEPT = 16
PATH_LIMIT = 400
SOCKETS_KEPT = 64
VERSION = re.compile(rb"(?:NCCL|RCCL) version (\d{1,2}\.\d{1,3}\.\d{1,3})")
IN_NAME = re.compile(r"\.so\.(\d{1,2}\.\d{1,3}\.\d{1,3})$")
IN_PACKAGE = re.compile(r"[nr]ccl[\w.]*-(\d{1,2}\.\d{1,3}\.\d{1,3})[\w.]*\.dist-info$")
LIBRARY = re.compile(r"(/\S*/lib[nr]ccl\.so[\w.]*)$")


def facts_of(pid, log):
    """What one rank's process says of itself; anything unread is None."""
    environment = environment_of(pid)
    library = library_of(pid)
    return {
        "pid": pid,
        "pid_inside": pid_inside(pid),
        "addresses": addresses_of(pid),
        "library": library,
        "version": version_of(pid, library, log),
        "enabled": environment.get("NCCL_RAS_ENABLE", "1") != "0",
        "ras": ras_listeners(pid, port_of(environment.get("NCCL_RAS_ADDR", ""))),
        "worker_socket": path_in(environment, "TORCH_WORKER_SERVER_SOCKET"),
        "pipe": path_in(environment, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE"),
    }


def path_in(environment, name):
    path = environment.get(name, "")
    return path if len(path) <= PATH_LIMIT else ""


def port_of(address):
    port = address.rpartition(":")[2]
    return int(port) if port.isdigit() and 0 < int(port) < 65536 else RAS_PORT


def read(path, limit):
    try:
        with open(path, "rb") as stream:
            return stream.read(limit)
    except OSError:
        return b""


def library_of(pid):
    """The NCCL that a process has loaded, by the path it sees; "" for none."""
    for line in read("/proc/%d/maps" % pid, MAPS_LIMIT).decode("utf-8", "replace").splitlines():
        found = LIBRARY.search(line)
        if found and len(found.group(1)) <= PATH_LIMIT:
            return found.group(1)
    return ""


def version_of(pid, library, log):
    """Major, minor and patch as text; "" where nothing says.

    What is loaded decides: a log may begin with the lines of an earlier attempt. Where NCCL is part
    of another library, the oldest that the log names is believed.
    """
    if library:
        inside = "/proc/%d/root%s" % (pid, library)
        found = version_in_names(inside) or version_in_file(inside)
        if found:
            return found
    told = {match.decode() for match in VERSION.findall(read(log, LOG_HEAD_BYTES))} if log else ()
    return min(told, key=lambda text: [int(n) for n in text.split(".")]) if told else ""


def version_in_names(path):
    """Of the file itself, or of the package it was installed from."""
    named = IN_NAME.search(os.path.realpath(path))
    if named:
        return named.group(1)
    packages = os.path.join(os.path.dirname(path), "..", "..", "..", "*ccl*.dist-info")
    versions = {m.group(1) for m in map(IN_PACKAGE.search, glob.glob(packages)) if m}
    return versions.pop() if len(versions) == 1 else ""


def version_in_file(path):
    """The library prints its version, so the sentence stands in it; one search for all ranks."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    key = (found.st_dev, found.st_ino)
    if key not in VERSIONS_READ:
        VERSIONS_READ[key] = search_version(path)
    return VERSIONS_READ[key]


def search_version(path):
    ends = time.monotonic() + SCAN_S
    try:
        with open(path, "rb") as stream:
            size = min(os.fstat(stream.fileno()).st_size, SCAN_LIMIT)
            with mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ) as content:
                at = 0
                while at < size and time.monotonic() < ends:
                    found = VERSION.search(content, at, min(size, at + SCAN_PIECE))
                    if found:
                        return found.group(1).decode()
                    at += SCAN_PIECE - 64
    except (OSError, ValueError):
        pass
    return ""


def pid_inside(pid):
    """The process's number in its own namespace, which is what it tells others."""
    found = re.search(rb"^NSpid:\s*(.+)$", read("/proc/%d/status" % pid, 65536), re.MULTILINE)
    return int(found.group(1).split()[-1]) if found else pid


def addresses_of(pid):
    """The addresses of a process's network namespace without loopback, IPv4 first."""
    trie = read("/proc/%d/net/fib_trie" % pid, TABLE_LIMIT).decode("ascii", "replace")
    four = re.findall(r"\|-- (\d+\.\d+\.\d+\.\d+)\n\s+/32 host LOCAL", trie)
    rows = read("/proc/%d/net/if_inet6" % pid, TABLE_LIMIT).decode("ascii", "replace").split("\n")
    six = [socket.inet_ntop(socket.AF_INET6, bytes.fromhex(r[:32])) for r in rows if len(r) > 40]
    found = dict.fromkeys(four + six)
    return [a for a in found if a != "::1" and not a.startswith("127.")][:ADDRESSES_KEPT]


def ras_listeners(pid, port):
    """Who listens on the port in the process's network: addresses to ask, sockets, its own ones."""
    tables = (read("/proc/%d/net/%s" % (pid, name), TABLE_LIMIT) for name in ("tcp6", "tcp"))
    rows = [row.split() for table in tables for row in table.decode("ascii", "replace").split("\n")]
    found = [(address_of(row[1]), row[9]) for row in rows if is_listener(row, port)]
    own = socket_inodes(pid)
    inodes = sorted(inode for _, inode in found)
    return {
        "port": port,
        "addresses": sorted({a for a, _ in found}, reverse=True)[:ADDRESSES_KEPT],
        "sockets": inodes[:SOCKETS_KEPT],
        "own": None if own is None else [inode for inode in inodes if inode in own][:SOCKETS_KEPT],
    }


def is_listener(row, port):
    return len(row) > 9 and row[3] == LISTENING and row[1].endswith(":%04X" % port)


def address_of(field):
    """Where a listener is reached, from the kernel's tables: words in the machine's byte order."""
    digits = field.partition(":")[0]
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    family = socket.AF_INET if len(words) == 1 else socket.AF_INET6
    address = socket.inet_ntop(family, b"".join(words))
    return {"::": "::1", "0.0.0.0": "127.0.0.1"}.get(address, address)  # noqa: S104 - read


def socket_inodes(pid):
    """The sockets a process holds; None where that may not be read."""
    folder = "/proc/%d/fd" % pid
    try:
        names = os.listdir(folder)[:FDS_LIMIT]
    except OSError:
        return None
    found = set()
    for name in names:
        try:
            link = os.readlink(os.path.join(folder, name))
        except OSError:
            continue
        if link.startswith("socket:["):
            found.add(link[8:-1])
    return found
