"""RUNS ON THE NODE. Runs a site's script and passes its output on, bounded in time and size.

Script and values come on stdin as one JSON object, so neither shows in a list of processes. The
exit status is the script's; 124 when it ran out of time. Python 3.8, standard library only.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading


def main(request):
    """Run the script in a session of its own; nothing of it outlives this program."""
    os.environ.update(request["env"])
    script = subprocess.Popen(
        ["/bin/sh", "-c", request["run"]],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    reader = threading.Thread(target=pass_on, args=(script.stdout, request["limit"]), daemon=True)
    reader.start()
    try:
        code = script.wait(request["deadline_s"])
    except subprocess.TimeoutExpired:
        code = 124
    with contextlib.suppress(ProcessLookupError):
        os.killpg(script.pid, signal.SIGKILL)
    reader.join(1)
    sys.stdout.flush()
    return code if code >= 0 else 128 - code


def pass_on(stream, left):
    """The first bytes go out, the rest is read so that the script does not wait for us."""
    for chunk in iter(lambda: stream.read1(65536), b""):
        sys.stdout.buffer.write(chunk[:left])
        left = max(0, left - len(chunk))


if __name__ == "__main__":
    # Not sys.exit: the reader may still sit in a pipe that a stray child holds open.
    os._exit(main(json.load(sys.stdin)))
