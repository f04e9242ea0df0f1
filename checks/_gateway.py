"""RUNS ON A GATEWAY. Runs ssh to the nodes behind it and sends each answer back as it is there.

It arrives on the standard input of one Python, is never written to disk and ends with its input, so
also when the controller or the connection dies; every ssh it started ends with it.

Orders come in and answers go out as a line of JSON, followed by as many bytes as it says. An order
either sets what many commands read first (`blob`), or runs one (`number`); `mark` is what the node
prints on stderr when the command begins, so that login and command have deadlines of their own.

A command that is `held` goes on until its input ends. More input comes as `feed`, each piece once
`fed` said that the one before went to ssh; its stdout goes out as it comes. Nothing of it is kept:
a controller that reads slowly blocks our writing, and that stops our reading from every ssh.
"""

import collections
import contextlib
import json
import os
import resource
import selectors
import signal
import subprocess
import sys
import time

HELLO = "brctl-gateway 2"
BEAT_S = 2.0  # the controller takes a gateway without a beat for dead
TICK_S = 0.1
CHUNK = 65536
DESCRIPTORS = 65536


class SshProcess:
    """One ssh, what it has to read, and its output so far."""

    def __init__(self, order, stdin):
        self.number = order["number"]
        self.mark = order["mark"].encode()
        self.held = order.get("held", False)
        self.last = not self.held
        limit = order["limit"]
        self.room = {"stdout": limit, "stderr": min(limit, order.get("stderr_limit", limit))}
        self.deadline_s = order["deadline_s"]
        self.begun = self.late = self.over = self.killed = False
        self.kill_at = time.monotonic() + order["login_s"]
        self.unsent = memoryview(stdin)
        self.kept = {"stdout": bytearray(), "stderr": bytearray()}
        self.child = subprocess.Popen(
            order["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.open = {name: getattr(self.child, name) for name in ("stdin", "stdout", "stderr")}
        for pipe in self.open.values():
            os.set_blocking(pipe.fileno(), False)

    def feed(self):
        """Send what the pipe takes; False when nothing is left to send."""
        try:
            self.unsent = self.unsent[os.write(self.open["stdin"].fileno(), self.unsent[:CHUNK]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            self.unsent, self.last = memoryview(b""), True
        return len(self.unsent) > 0

    def read(self, name):
        """Keep what the pipe holds now; False at its end."""
        try:
            data = os.read(self.open[name].fileno(), CHUNK)
        except BlockingIOError:
            return True
        kept, room = self.kept[name], self.room[name]
        kept += data[:room]
        self.room[name] = room - len(data[:room])
        self.over = self.over or len(data) > room
        if name == "stderr" and not self.begun and self.mark in kept:
            self.begun = True
            self.kill_at = time.monotonic() + self.deadline_s
        return bool(data)

    def kill(self):
        self.killed = True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.child.pid, signal.SIGKILL)


class Gateway:
    """Keeps up to `at_once` ssh running, beside those that are held."""

    def __init__(self, at_once):
        self.at_once = at_once
        self.selector = selectors.DefaultSelector()
        self.inbox = bytearray()
        self.blob = b""
        self.waiting = collections.deque()
        self.running = {}
        self.sent_at = 0.0

    def serve(self):
        os.set_blocking(0, False)
        self.selector.register(0, selectors.EVENT_READ, None)
        self.send({"hello": HELLO})
        try:
            while self.poll():
                pass
        finally:
            for process in self.running.values():
                process.kill()

    def poll(self):
        """Wait once for pipes and deadlines; False when the input ended."""
        for key, _ in self.selector.select(TICK_S):
            if key.data is None:
                if not self.read_orders():
                    return False
            else:
                self.transfer(*key.data)
        self.start()
        for process in list(self.running.values()):
            self.finish_if_ended(process)
        if time.monotonic() - self.sent_at > BEAT_S:
            self.send({"beat": len(self.running)})
        return True

    def read_orders(self):
        """Read orders; False at the end of the input."""
        try:
            data = os.read(0, CHUNK)
        except BlockingIOError:
            return True
        self.inbox += data
        while self.next_order():
            pass
        return bool(data)

    def next_order(self):
        line, newline, _ = self.inbox.partition(b"\n")
        if not newline:
            return False
        order = json.loads(line.decode())
        end = len(line) + 1 + order["bytes"]
        if len(self.inbox) < end:
            return False
        payload = bytes(self.inbox[len(line) + 1 : end])
        del self.inbox[:end]
        if "blob" in order:
            self.blob = payload
        elif "cancel" in order:
            self.cancel(order["cancel"])
        elif "feed" in order:
            self.feed(self.running.get(order["feed"]), payload, order["last"])
        else:
            self.waiting.append((order, self.blob, payload))
        return True

    def feed(self, process, payload, last):
        """Input for a held command; one that has ended needs none."""
        if process is None or "stdin" not in process.open:
            return
        process.unsent, process.last = memoryview(payload), last
        self.selector.register(process.open["stdin"], selectors.EVENT_WRITE, (process, "stdin"))

    def cancel(self, number):
        self.waiting = collections.deque(w for w in self.waiting if w[0]["number"] != number)
        if number in self.running:
            self.running[number].kill()

    def start(self):
        busy = sum(not (process.held and process.begun) for process in self.running.values())
        while self.waiting and busy < self.at_once:
            order, blob, rest = self.waiting.popleft()
            try:
                process = SshProcess(order, blob[: order["head"]] + rest)
            except OSError as exc:
                self.refuse(order, str(exc))
                continue
            self.running[process.number] = process
            busy += 1
            for name, events in (("stdout", 1), ("stderr", 1), ("stdin", 2)):
                self.selector.register(process.open[name], events, (process, name))

    def refuse(self, order, reason):
        text = reason.encode()
        answer = {"number": order["number"], "status": None, "begun": False, "late": False}
        self.send({**answer, "over": False, "stdout": 0, "stderr": len(text)}, text)

    def transfer(self, process, name):
        if name not in process.open:
            return
        if name == "stdin":
            if not process.feed():
                self.fed(process)
            return
        if not process.read(name):
            self.close_pipe(process, name)
        if process.held and name == "stdout":
            self.pass_on(process)

    def fed(self, process):
        """All input that we had went to ssh."""
        if process.last:
            self.close_pipe(process, "stdin")
            return
        self.selector.unregister(process.open["stdin"])
        self.send({"number": process.number, "fed": True})

    def pass_on(self, process):
        """Send what a held command said."""
        said = process.kept["stdout"]
        if said:
            self.send({"number": process.number, "piece": True, "stdout": len(said)}, bytes(said))
            said.clear()

    def close_pipe(self, process, name):
        pipe = process.open.pop(name)
        with contextlib.suppress(KeyError):  # a held command's input between two pieces
            self.selector.unregister(pipe)
        pipe.close()

    def finish_if_ended(self, process):
        """Send the result of an ssh that ended; kill one that is late or over its limit first."""
        if process.over or time.monotonic() >= process.kill_at:
            process.late = not process.over
            process.kill()
            process.child.wait()
        elif process.held and not process.killed and "stdout" in process.open:
            return  # its output ends first, so that not every one is waited for at every turn
        elif process.child.poll() is None:
            return
        for name in ("stdout", "stderr"):
            while name in process.open and not process.over and process.read(name):
                if not select_now(process.open[name]):
                    break
        for name in list(process.open):
            self.close_pipe(process, name)
        del self.running[process.number]
        stdout, stderr = (bytes(process.kept[name]) for name in ("stdout", "stderr"))
        self.send(
            {
                "number": process.number,
                "status": process.child.returncode,
                "begun": process.begun,
                "late": process.late,
                "over": process.over,
                "stdout": len(stdout),
                "stderr": len(stderr),
            },
            stdout + stderr,
        )

    def send(self, answer, payload=b""):
        self.sent_at = time.monotonic()
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + payload)
        sys.stdout.buffer.flush()


def raise_descriptor_limit():
    """Each ssh takes three pipes, and a login often gets 1024 descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def select_now(pipe):
    """Whether a pipe has something to read at once."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(0))


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    raise_descriptor_limit()
    Gateway(globals()["AT_ONCE"]).serve()
