"""RUNS ON THE NODE. Runs one foreign check and reports its exit code and first line.

Stands in for the probe of a check.yaml that says `foreign:`. What the program does is its own
affair; brctl runs it with its arguments as they stand, without a shell.
"""

import json
import os
import signal
import subprocess
import sys

OUTPUT_BYTES = 4096


def run(command, limit_s):
    """(exit code, first line), or (None, why) when the program could not be run or did not end."""
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            start_new_session=True,
        )  # fmt: skip
    except OSError as exc:
        return None, "%s: %s" % (command[0], exc.strerror)
    try:
        out, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return None, "%s did not end within %g s" % (command[0], limit_s)
    text = out[:OUTPUT_BYTES].decode("utf-8", "replace").strip()
    return process.returncode, text.splitlines()[0] if text else ""


def main():
    parameters = json.loads(sys.stdin.read())
    name = parameters["name"]
    rows, notes = [], []
    code, line = run(parameters["command"], float(parameters["deadline_s"]) * 0.9)
    if code is None or code not in parameters["known_codes"]:
        # Nagios 3, 127, a signal: the plugin says that it does not know, so neither do we.
        notes.append(line if code is None else "exit %d: %s" % (code, line))
    else:
        rows.append({"name": name + ".code", "subject": "", "value": code})
    if code is not None and line:
        rows.append({"name": name + ".line", "subject": "", "value": line[:400]})
    json.dump({"measurements": rows, "notes": notes}, sys.stdout)
    return 1 if notes else 0


if __name__ == "__main__":
    sys.exit(main())
