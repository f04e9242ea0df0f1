"""RUNS ON A GATEWAY. Runs ssh to the nodes behind it and sends each answer back as it is there.

It arrives on the standard input of one Python, is never written to disk and ends with its input, so
also when the controller or the connection dies; every ssh it started ends with it.

Orders come in and answers go out as a line of JSON, followed by as many bytes as it says. An order
either sets what many commands read first (`blob`), or runs one (`number`); `mark` is what the node
prints on stderr when the command begins, so that login and command have deadlines of their own.
"""

import collections
import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time

HELLO = "brctl-gateway 1"
BEAT_S = 2.0  # a gateway that says nothing for long is taken for dead
TICK_S = 0.1
CHUNK = 65536


class Job:
    """One ssh, what it has to read, and what it said so far."""

    def __init__(self, order, stdin):
        self.number = order["number"]
        self.mark = order["mark"].encode()
        self.limit = order["limit"]
        self.deadline_s = order["deadline_s"]
        self.begun = self.late = self.over = False
        self.kill_at = time.monotonic() + order["login_s"]
        self.unsent = memoryview(stdin)
        self.kept = {"stdout": bytearray(), "stderr": bytearray()}
        self.process = subprocess.Popen(
            order["argv"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self.open = {name: getattr(self.process, name) for name in ("stdin", "stdout", "stderr")}
        for pipe in self.open.values():
            os.set_blocking(pipe.fileno(), False)

    def feed(self):
        """Send what the pipe takes; False when nothing is left to send."""
        try:
            self.unsent = self.unsent[os.write(self.open["stdin"].fileno(), self.unsent[:CHUNK]) :]
        except BlockingIOError:
            return True
        except BrokenPipeError:
            return False
        return len(self.unsent) > 0

    def read(self, name):
        """Keep what the pipe holds now; False at its end."""
        try:
            data = os.read(self.open[name].fileno(), CHUNK)
        except BlockingIOError:
            return True
        kept = self.kept[name]
        room = self.limit - len(kept)
        kept += data[:room]
        self.over = self.over or len(data) > room
        if name == "stderr" and not self.begun and self.mark in kept:
            self.begun = True
            self.kill_at = time.monotonic() + self.deadline_s
        return bool(data)

    def kill(self):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)


class Gateway:
    """Keeps up to `at_once` ssh running."""

    def __init__(self, at_once):
        self.at_once = at_once
        self.selector = selectors.DefaultSelector()
        self.inbox = bytearray()
        self.blob = b""
        self.waiting = collections.deque()
        self.running = {}
        self.said_at = 0.0

    def serve(self):
        os.set_blocking(0, False)
        self.selector.register(0, selectors.EVENT_READ, None)
        self.say({"hello": HELLO})
        try:
            while self.turn():
                pass
        finally:
            for job in self.running.values():
                job.kill()

    def turn(self):
        """One look at everything; False when the input ended."""
        for key, _ in self.selector.select(TICK_S):
            if key.data is None:
                if not self.take():
                    return False
            else:
                self.pump(*key.data)
        self.start()
        for job in list(self.running.values()):
            self.settle(job)
        if time.monotonic() - self.said_at > BEAT_S:
            self.say({"beat": len(self.running)})
        return True

    def take(self):
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
        else:
            self.waiting.append((order, self.blob, payload))
        return True

    def cancel(self, number):
        self.waiting = collections.deque(w for w in self.waiting if w[0]["number"] != number)
        if number in self.running:
            self.running[number].kill()

    def start(self):
        while self.waiting and len(self.running) < self.at_once:
            order, blob, rest = self.waiting.popleft()
            try:
                job = Job(order, blob[: order["head"]] + rest)
            except OSError as exc:
                self.refuse(order, str(exc))
                continue
            self.running[job.number] = job
            for name, events in (("stdout", 1), ("stderr", 1), ("stdin", 2)):
                self.selector.register(job.open[name], events, (job, name))

    def refuse(self, order, why):
        text = why.encode()
        answer = {"number": order["number"], "status": None, "begun": False, "late": False}
        self.say({**answer, "over": False, "stdout": 0, "stderr": len(text)}, text)

    def pump(self, job, name):
        if name in job.open and not (job.feed() if name == "stdin" else job.read(name)):
            self.shut(job, name)

    def shut(self, job, name):
        pipe = job.open.pop(name)
        self.selector.unregister(pipe)
        pipe.close()

    def settle(self, job):
        """Answer for a job that ended; kill one that is late or says too much."""
        if job.over or time.monotonic() >= job.kill_at:
            job.late = not job.over
            job.kill()
            job.process.wait()
        elif job.process.poll() is None:
            return
        for name in ("stdout", "stderr"):
            while name in job.open and not job.over and job.read(name):
                if not select_now(job.open[name]):
                    break
        for name in list(job.open):
            self.shut(job, name)
        del self.running[job.number]
        stdout, stderr = (bytes(job.kept[name]) for name in ("stdout", "stderr"))
        self.say(
            {
                "number": job.number,
                "status": job.process.returncode,
                "begun": job.begun,
                "late": job.late,
                "over": job.over,
                "stdout": len(stdout),
                "stderr": len(stderr),
            },
            stdout + stderr,
        )

    def say(self, answer, payload=b""):
        self.said_at = time.monotonic()
        sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + payload)
        sys.stdout.buffer.flush()


def select_now(pipe):
    """Whether a pipe has something to read at once."""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        return bool(selector.select(0))


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(1))
    Gateway(globals()["AT_ONCE"]).serve()
