"""RUNS ON THE NODE. Keeps torch loaded and forks one rank per collective test of a group.

The first order starts a worker that outlives its SSH session: importing torch costs more than the
test. It listens on a socket in a private directory, ends a test that a newer order replaces, and
leaves when told or when nobody has asked for a while. Loads GPUs and links; changes nothing else.
"""

import contextlib
import gc
import json
import os
import signal
import socket
import struct
import sys
import tempfile
import time

IDLE_S = 120
REPLY_LIMIT = 1 << 20
SIOCGIFADDR = 0x8915


def main(order):
    """Pass the order to this node's worker and print its reply; start the worker if need be."""
    folder = os.path.join(tempfile.gettempdir(), "brctl-group-" + order["session"])
    address = os.path.join(folder, "socket")
    if order["do"] == "stop":
        with contextlib.suppress(OSError):
            ask(address, order)
        print(json.dumps({"stopped": True}))
        return
    try:
        reply = ask(address, order)
    except OSError:
        start_worker(folder, address)
        reply = ask(address, order)
    print(reply or json.dumps({"problem": "the rank ended without a reply"}))


def ask(address, order):
    """One order, one reply."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as channel:
        channel.connect(address)
        channel.sendall(json.dumps(order).encode() + b"\n")
        parts = []
        size = 0
        while size < REPLY_LIMIT:
            part = channel.recv(65536)
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts).decode("utf-8", "replace")


def start_worker(folder, address):
    """Listen first, then fork: whoever asks meanwhile waits in the queue."""
    os.mkdir(folder, 0o700)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(address)
    listener.listen(8)
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        try:
            serve(listener)
        finally:
            for path, remove in ((address, os.unlink), (folder, os.rmdir)):
                with contextlib.suppress(OSError):
                    remove(path)
            os._exit(0)
    os.wait()
    listener.close()


def serve(listener):
    """Fork a child for each order; it owns the connection, so a hanging test holds up nobody."""
    gc.disable()  # a million new objects are no garbage to look for, here or in a child
    try:
        import torch
        import torch.distributed  # what the children would else each import

        problem = ""
    except Exception as exc:
        torch, problem = None, "cannot import torch: %s" % exc
    gc.freeze()
    gc.enable()
    child = 0
    last_order_at = time.monotonic()
    listener.settimeout(1.0)
    while child or time.monotonic() - last_order_at < IDLE_S:
        if child and os.waitpid(child, os.WNOHANG)[0]:
            end(child)  # its ranks may outlive it
            child = 0
        try:
            channel, _ = listener.accept()
        except socket.timeout:
            continue
        last_order_at = time.monotonic()
        with channel:
            order = read_order(channel)
            if child:
                end(child)
                child = 0
            if order is None:
                continue
            if order["do"] == "stop":
                return
            child = os.fork()
            if child == 0:
                run_child(channel, order, torch, problem)
    if child:
        end(child)


def read_order(channel):
    channel.settimeout(5.0)
    try:
        line = channel.makefile("rb").readline(REPLY_LIMIT)
        return json.loads(line)
    except (OSError, ValueError):
        return None


def end(child):
    """Kill a test and everything it forked."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            kill(child, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.waitpid(child, 0)


def run_child(channel, order, torch, problem):
    """The forked test: reply and leave, or be killed by the alarm."""
    os.setpgid(0, 0)
    signal.setitimer(signal.ITIMER_REAL, max(1.0, float(order["deadline_s"])))
    try:
        reply = answer(order, torch, problem)
    except Exception as exc:
        reply = {"problem": ("%s: %s" % (type(exc).__name__, exc))[:300]}
    try:
        channel.settimeout(5.0)
        channel.sendall(json.dumps(reply).encode())
    finally:
        os._exit(0)


def answer(order, torch, problem):
    if problem:
        return {"problem": problem}
    gpus = torch.cuda.device_count()
    # A node by itself still needs two ranks to send anything.
    least = 2 if int(order.get("node_count") or 1) == 1 else 1
    local = int(order.get("local_ranks") or 0) or max(least, gpus)
    if order["do"] == "hello":
        return {"torch": str(torch.__version__), "gpus": gpus}
    readers = []
    for index in range(local):
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.close(reader)
            signal.setitimer(signal.ITIMER_REAL, max(1.0, float(order["deadline_s"])))
            one_rank(order, torch, index, local, gpus, writer)
        os.close(writer)
        readers.append(reader)
    ranks = []
    for reader in readers:
        with os.fdopen(reader, "rb") as stream:
            text = stream.read(REPLY_LIMIT)
        ranks.append(json.loads(text) if text else {"error": "the rank died", "done": 0})
    return {"ranks": ranks}


def one_rank(order, torch, index, local, gpus, writer):
    """One process of the group; tells how far it came, whatever happens."""
    state = {"done": 0, "wrong": [], "seconds": [], "error": "", "set_up": False}
    try:
        run_rank(order, torch, index, local, gpus, state)
    except Exception as exc:
        state["error"] = ("%s: %s" % (type(exc).__name__, exc))[:500]
    os.write(writer, json.dumps(state).encode())
    os._exit(0)


def run_rank(order, torch, index, local, gpus, state):
    import datetime

    dist = torch.distributed
    use_interface(order)
    world = int(order["node_count"]) * local
    rank = int(order["node_rank"]) * local + index
    limit = datetime.timedelta(seconds=float(order["deadline_s"]))
    store = dist.TCPStore(order["master"], int(order["port"]), world, rank == 0, limit)
    state["set_up"] = True
    device = torch.device("cuda", index) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    dist.init_process_group(
        "nccl" if gpus else "gloo", store=store, rank=rank, world_size=world, timeout=limit
    )
    kind = PingPong if order["op"] == "pingpong" else Collective
    test = kind(torch, order["op"], int(order["size_bytes"]), rank, world, device)
    test.run(0)
    for repetition in range(1, int(order["reps"]) + 1):
        dist.barrier()
        seconds, right = test.run(repetition)
        state["seconds"].append(seconds)
        if not right:
            state["wrong"].append(repetition)
        state["done"] = repetition
    state["path"] = test.path()
    dist.barrier()


def use_interface(order):
    """Make gloo and NCCL use the interface that has this node's own address."""
    import fcntl

    own = order.get("address") or ""
    for _, name in socket.if_nameindex():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            request = struct.pack("256s", name.encode()[:15])
            try:
                found = socket.inet_ntoa(fcntl.ioctl(probe.fileno(), SIOCGIFADDR, request)[20:24])
            except OSError:
                continue
        if found == own:
            os.environ["GLOO_SOCKET_IFNAME"] = name
            os.environ["NCCL_SOCKET_IFNAME"] = name
            return
    if own.startswith("127."):
        os.environ["GLOO_SOCKET_IFNAME"] = os.environ["NCCL_SOCKET_IFNAME"] = "lo"


def wait_for(torch, device):
    if device.type == "cuda":
        torch.cuda.synchronize()


class Collective(object):
    """One operation on whole numbers, so that every bit of the result is known beforehand."""

    def __init__(self, torch, op, size_bytes, rank, world, device):
        self.torch, self.op, self.rank, self.world = torch, op, rank, world
        count = max(world, size_bytes // 4 // world * world)
        self.base = (torch.arange(count, device=device) % 251).to(torch.float32)
        self.device = device

    def run(self, repetition):
        """Seconds and whether all bits are right."""
        send, out, expected = getattr(self, "prepare_" + self.op)(repetition)
        self.wait()
        began = time.perf_counter()
        getattr(self, "start_" + self.op)(send, out)
        self.wait()
        seconds = time.perf_counter() - began
        return seconds, bool(self.torch.equal(out, expected))

    def wait(self):
        wait_for(self.torch, self.device)

    def path(self):
        """A collective says nothing of a single path."""

    def prepare_all_reduce(self, repetition):
        world = self.world
        send = self.base + float(self.rank + repetition)
        expected = self.base * world + float(world * (world - 1) // 2 + world * repetition)
        return send, send, expected

    def start_all_reduce(self, send, out):
        self.torch.distributed.all_reduce(out)

    def prepare_all_gather(self, repetition):
        part = self.base[: len(self.base) // self.world]
        expected = self.torch.cat([part + float(r + repetition) for r in range(self.world)])
        return part + float(self.rank + repetition), self.torch.zeros_like(expected), expected

    def start_all_gather(self, send, out):
        self.torch.distributed.all_gather(list(out.chunk(self.world)), send)

    def prepare_all_to_all(self, repetition):
        torch, world, rank = self.torch, self.world, self.rank
        part = self.base[: len(self.base) // world]
        send = torch.cat([part + float(rank * world + to + repetition) for to in range(world)])
        expected = torch.cat([part + float(s * world + rank + repetition) for s in range(world)])
        return send, torch.zeros_like(expected), expected

    def start_all_to_all(self, send, out):
        self.torch.distributed.all_to_all_single(out, send)


class PingPong(object):
    """The first half of the ranks with the second: delay of few bytes, rate of many, each way.

    Clocks of two nodes differ, so a way is timed on one node: it sends, the other says got it.
    """

    SMALL = 2
    TURNS, LEAST_TURNS = 32, 8
    ENOUGH_S, PATIENCE_S = 0.2, 1.0

    def __init__(self, torch, op, size_bytes, rank, world, device):
        self.torch, self.device, self.rank = torch, device, rank
        self.first = rank < world // 2
        self.peer = rank + world // 2 if self.first else rank - world // 2
        count = max(self.SMALL, size_bytes // 4)
        self.base = (torch.arange(count, device=device) % 251).to(torch.float32)
        self.size_bytes = count * 4
        self.delays, self.there, self.back = [], [], []

    def run(self, repetition):
        """Seconds for both ways of the large message, and whether all bits of all were right."""
        self.few, self.many = (
            self.base[: self.SMALL] + float(repetition),
            self.base + float(repetition),
        )
        right = [self.timed(self.few, True, self.delays) for _ in range(self.TURNS)]
        began = time.perf_counter()
        for turn in range(self.TURNS):
            right += self.both_directions()
            spent_s = time.perf_counter() - began
            wanted = spent_s < (self.PATIENCE_S if turn < self.LEAST_TURNS else self.ENOUGH_S)
            if not self.agree(wanted):
                break
        return min(self.there) + min(self.back), all(right)

    def both_directions(self):
        return [self.timed(self.many, True, self.there), self.timed(self.many, False, self.back)]

    def timed(self, message, first_sends, times):
        """One turn once both are ready: to compare the last message takes its time as well."""
        sends = self.first is first_sends
        out, expected = (message, self.few) if sends else (self.few, message)
        buffer = self.torch.zeros_like(expected)
        self.agree()
        began = time.perf_counter()
        self.exchange(out, buffer, sends)
        times.append(time.perf_counter() - began)
        return bool(self.torch.equal(buffer, expected))

    def agree(self, more=False):
        """The first node says whether to go on; the second says that it heard."""
        flag = self.torch.tensor([int(more)], device=self.device)
        self.exchange(flag, flag, self.first)
        return bool(flag.item())

    def exchange(self, out, buffer, sends_first):
        dist = self.torch.distributed
        if sends_first:
            dist.send(out, self.peer)
            dist.recv(buffer, self.peer)
        else:
            dist.recv(buffer, self.peer)
            dist.send(out, self.peer)
        wait_for(self.torch, self.device)

    def path(self):
        """The best of all repetitions: load beside the test only ever adds time."""
        if not self.first:
            return None
        delay = min(self.delays) / 2
        seconds = [max(1e-9, min(times) - delay) for times in (self.there, self.back)]
        return {
            "delay_us": delay * 1e6,
            "there_gb_per_s": self.size_bytes / seconds[0] / 1e9,
            "back_gb_per_s": self.size_bytes / seconds[1] / 1e9,
        }


if __name__ == "__main__":
    main(globals().get("ORDER") or json.loads(sys.stdin.read()))
