"""RUNS ON THE NODE. Runs all probes of one sweep and prints their answers as JSON lines.

It arrives on the standard input of one Python, is never written to disk and changes nothing. Each
probe gets its own process group and deadline; one that hangs, babbles or leaves children behind
costs the others nothing. The parent never calls a driver: a probe stuck in the kernel is left
behind and named, and the sweep still ends.

The caller executes it as `__main__` with BUNDLE in its globals: `probes` (check, source,
deadline_s, torch, alone, drop), `pynvml` (source or null), `preload` (modules), `parallel`,
`total_s`, and `node` with `parameters` by check and `torch_python`. Who runs a probe again and
again gives its `code`, compiled, too.
"""

import contextlib
import gc
import json
import os
import selectors
import signal
import sys
import time
import traceback
import types

STDOUT_LIMIT_BYTES = 256 * 1024
STDERR_LIMIT_BYTES = 8 * 1024
GRACE_S = 1.0  # a probe keeps its own deadline; past it by this much it is killed
FLUSH_S = 0.5  # results of this long travel together: each packet costs the controller CPU
REAP_S = 1.0  # SIGKILL acts at once unless the process hangs in the kernel (state D)
PROBE_CRASHED = 70  # 1 means "could not measure", which a traceback must not claim
SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "tcsh", "csh", "fish")

TORCH_BOOT = (
    """
import os, sys, traceback
def crashed(*error):
    traceback.print_exception(*error)
    sys.stderr.flush()
    os._exit(%d)
sys.excepthook = crashed
source = sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
exec(compile(source, "probe", "exec"), {"__name__": "__main__"})
"""
    % PROBE_CRASHED
)


class ProbeProcess:
    """One probe's process, what it has to read, and its output so far."""

    def __init__(self, probe, node):
        self.check = probe["check"]
        self.started = time.monotonic()
        self.kill_at = self.started + probe["deadline_s"] + GRACE_S
        self.timed_out = False
        self.over_limit = False
        self.kept = {"stdout": bytearray(), "stderr": bytearray()}
        self.pipes = {}
        self.drop = probe.get("drop", False)
        text = json.dumps(node["parameters"].get(self.check, {})).encode()
        if probe["torch"]:
            source = probe["source"].encode()
            self.unsent = b"%d\n%s%s" % (len(source), source, text)
            argv = [node["torch_python"], "-I", "-B", "-c", TORCH_BOOT]
            self.pid = self._fork(lambda: os.execvp(argv[0], argv))  # noqa: S606 - no shell is wanted
        else:
            self.unsent = text
            code = probe.get("code") or probe["source"]
            self.pid = self._fork(lambda: run_source(code, self.check))

    def _fork(self, body):
        stdin, stdout, stderr = os.pipe(), os.pipe(), os.pipe()
        pid = os.fork()
        if pid == 0:
            become_probe((stdin[0], stdout[1], stderr[1]), body, self.drop)
        for child_end in (stdin[0], stdout[1], stderr[1]):
            os.close(child_end)
        self.pipes = {"stdin": stdin[1], "stdout": stdout[0], "stderr": stderr[0]}
        for parent_end in self.pipes.values():
            os.set_blocking(parent_end, False)
        return pid

    def close(self, name):
        os.close(self.pipes.pop(name))

    def feed(self):
        """Send what the pipe takes; True when all is sent."""
        try:
            self.unsent = self.unsent[os.write(self.pipes["stdin"], self.unsent) :]
        except BlockingIOError:
            return False
        except BrokenPipeError:
            return True
        return not self.unsent

    def read(self, name):
        """Keep what a pipe holds now; False at its end."""
        limit = STDOUT_LIMIT_BYTES if name == "stdout" else STDERR_LIMIT_BYTES
        while True:
            try:
                chunk = os.read(self.pipes[name], 65536)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            room = limit - len(self.kept[name])
            self.kept[name] += chunk[:room]
            if len(chunk) > room and name == "stdout":
                self.over_limit = True
                return True

    def kill(self):
        for target in (os.killpg, os.kill):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                target(self.pid, signal.SIGKILL)

    def result(self, status, abandoned):
        text = {name: bytes(kept).decode("utf-8", "replace") for name, kept in self.kept.items()}
        return {
            "type": "result",
            "check": self.check,
            "exit": status,
            "seconds": round(time.monotonic() - self.started, 4),
            "timed_out": self.timed_out,
            "over_limit": self.over_limit,
            "abandoned": abandoned,
            "stdout": text["stdout"],
            "stderr": text["stderr"],
        }


def become_probe(descriptors, body, drop):
    """In the child: own group, the pipes as standard streams, then `body`; never returns."""
    status = PROBE_CRASHED
    try:
        os.setpgid(0, 0)
        for target, descriptor in enumerate(descriptors):
            os.dup2(descriptor, target)
        os.closerange(3, 256)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        if drop:
            drop_privileges()
        status = body()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def drop_privileges():
    """Become the user who called sudo, for good; somebody who logs in as root stays root."""
    uid = int(os.environ.get("SUDO_UID", 0))
    if os.geteuid() != 0 or uid == 0:
        return
    import pwd

    user = pwd.getpwuid(uid)
    os.initgroups(user.pw_name, user.pw_gid)
    os.setgid(user.pw_gid)
    os.setuid(uid)
    os.environ.update(HOME=user.pw_dir, USER=user.pw_name, LOGNAME=user.pw_name)


def run_source(source, check):
    """Execute a probe, its text or what that was compiled to, as `__main__`; its exit status."""
    try:
        code = compile(source, check, "exec") if isinstance(source, str) else source
        exec(code, {"__name__": "__main__", "__file__": check})  # noqa: S102 - our own probes
    except SystemExit as ending:
        if ending.code is None:
            return 0
        if isinstance(ending.code, int):
            return ending.code & 255
        sys.stderr.write("%s\n" % ending.code)
        return PROBE_CRASHED
    return 0


class Runner:
    """Keeps up to `parallel` probes running and prints each result as it comes."""

    def __init__(self, bundle):
        self.waiting = list(bundle["probes"])
        self.node = bundle["node"]
        self.parallel = bundle["parallel"]
        self.give_up_at = time.monotonic() + bundle["total_s"]
        self.running = []
        self.left = {}  # pid by check, of what hangs in the kernel and cannot be killed
        self.alone = False
        self.count = 0
        self.unflushed = []
        self.flush_at = 0.0
        self.selector = selectors.DefaultSelector()

    def run(self):
        try:
            while self.go_on():
                pass
        finally:
            self.kill()

    def go_on(self):
        """Start what may start, wait a moment, report what ended; False when nothing is left."""
        self.start_ready()
        self.wait()
        for run in list(self.running):
            self.finish_if_ended(run)
        return bool(self.waiting or self.running)

    def kill(self):
        for run in self.running:
            run.kill()

    def start_ready(self):
        while self.waiting and len(self.running) < self.parallel and not self.alone:
            probe = self.waiting[0]
            if probe["alone"] and self.running:
                return
            self.waiting.pop(0)
            refusal = self.refusal(probe)
            if refusal:
                self.emit(refusal)
                continue
            run = ProbeProcess(probe, self.node)
            run.kill_at = min(run.kill_at, self.give_up_at)
            self.alone = probe["alone"]
            self.running.append(run)
            self.selector.register(run.pipes["stdin"], selectors.EVENT_WRITE, (run, "stdin"))
            for name in ("stdout", "stderr"):
                self.selector.register(run.pipes[name], selectors.EVENT_READ, (run, name))

    def refusal(self, probe):
        """The result of a probe that cannot be started, or None."""
        late = time.monotonic() >= self.give_up_at
        if not late and not (probe["torch"] and not self.node["torch_python"]):
            return None
        why = "not started: the time of the whole sweep on this node was used up"
        if not late:
            why = "no interpreter with torch is known for this node (inventory: torch_python)"
        return {
            "type": "result",
            "check": probe["check"],
            "exit": None if late else 1,
            "seconds": 0.0,
            "timed_out": late,
            "over_limit": False,
            "abandoned": False,
            "stdout": "" if late else json.dumps({"measurements": [], "notes": [why]}),
            "stderr": why,
        }

    def wait(self):
        if not self.running:
            return
        next_kill = min(run.kill_at for run in self.running)
        # Exits are noticed by the closed pipes; the half second finds a probe whose child holds
        # them open.
        timeout = max(0.0, min(0.5, next_kill - time.monotonic()))
        if not any(run.pipes for run in self.running):
            timeout = min(timeout, 0.002)
        for key, _ in self.selector.select(timeout):
            run, name = key.data
            if run.feed() if name == "stdin" else not run.read(name):
                self.forget(run, name)
        if self.unflushed and time.monotonic() >= self.flush_at:
            self.flush()

    def forget(self, run, name):
        self.selector.unregister(run.pipes[name])
        run.close(name)

    def finish_if_ended(self, run):
        """Report a probe that ended; kill one that is late or talks too much, then report it."""
        pid, status = os.waitpid(run.pid, os.WNOHANG)
        abandoned = False
        if pid == 0:
            run.timed_out = time.monotonic() >= run.kill_at
            if not (run.timed_out or run.over_limit):
                return
            run.kill()
            pid, status = reap(run.pid)
            abandoned = pid == 0
            if abandoned:
                self.left[run.check] = run.pid
        for name in ("stdout", "stderr"):
            if name in run.pipes:
                run.read(name)
        run.kill()
        for name in list(run.pipes):
            self.forget(run, name)
        self.running.remove(run)
        self.alone = False
        self.emit(run.result(None if abandoned else exit_of(status), abandoned))

    def emit(self, result):
        """Keep a result until others go with it; a child never has it in its own stdout."""
        self.count += result["type"] == "result"
        self.unflushed.append(json.dumps(result) + "\n")
        if time.monotonic() >= self.flush_at:
            self.flush()

    def flush(self):
        sys.stdout.write("".join(self.unflushed))
        sys.stdout.flush()
        self.unflushed.clear()
        self.flush_at = time.monotonic() + FLUSH_S


def reap(pid):
    give_up_at = time.monotonic() + REAP_S
    while time.monotonic() < give_up_at:
        found = os.waitpid(pid, os.WNOHANG)
        if found[0]:
            return found
        time.sleep(0.01)
    return 0, 0


def exit_of(status):
    """Exit status, or minus the signal that ended it."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def login_seconds():
    """Seconds since the login shell that started us began; None when /proc does not say."""
    try:
        started = [ticks_of("self")]
        parent = os.getppid()
        with open("/proc/%d/comm" % parent) as comm:
            if comm.read().strip() in SHELLS:
                started.append(ticks_of(parent))
        with open("/proc/uptime") as uptime:
            now = float(uptime.read().split()[0])
    except (OSError, ValueError, IndexError):
        return None
    return round(max(0.0, now - min(started) / os.sysconf("SC_CLK_TCK")), 3)


def ticks_of(pid):
    with open("/proc/%s/stat" % pid) as stat:
        return int(stat.read().rpartition(")")[2].split()[19])


def preload(names):
    """Import what several probes will import: once here instead of once in each of them."""
    for name in names:
        with contextlib.suppress(ImportError):
            __import__(name)


def install_pynvml(source):
    """Make `import pynvml` work in every probe; imported once, before the first fork."""
    module = types.ModuleType("pynvml")
    module.__file__ = "pynvml.py"
    sys.modules["pynvml"] = module
    exec(compile(source, "pynvml.py", "exec"), module.__dict__)  # noqa: S102


def main(bundle):
    runner = Runner(bundle)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    signal.signal(signal.SIGHUP, lambda *_: sys.exit(129))
    runner.emit(
        {
            "type": "hello",
            "python": "%d.%d.%d" % sys.version_info[:3],
            "node": os.uname().nodename,
            "login_s": login_seconds(),
        }
    )
    preload(bundle["preload"])
    if bundle.get("pynvml"):
        install_pynvml(bundle["pynvml"])
    gc.freeze()
    try:
        runner.run()
        used = os.times()
        cpu_s = used.user + used.system + used.children_user + used.children_system
        runner.emit({"type": "end", "count": runner.count, "cpu_s": round(cpu_s, 3)})
    finally:
        runner.flush()


if __name__ == "__main__":
    main(globals()["BUNDLE"])
