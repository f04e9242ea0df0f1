"""CPU time of starting brctl, beside bare Python in the same run.

python -m tests.bench.startup

Prints the median user+system milliseconds of whole processes: `brctl --help`, one command, one
TAB, and `python3 -c pass` as the floor. Goals: help under 150 ms, completion under 40 ms.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 15
GOALS_MS = {"brctl --help": 150.0, "TAB (brctl __complete)": 40.0}


def cpu_ms(command: list[str], environment: dict[str, str]) -> float:
    """CPU milliseconds of one finished process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return 1000 * used


def inventory(folder: Path) -> Path:
    """A context of 1,000 nodes that `brctl ls` can list without a network."""
    (folder / "inventory.yaml").write_text(
        "apiVersion: brctl.dev/v1\nkind: Inventory\nnodes:\n"
        "  gpu[0001-0990]: {role: active, gpus: 8}\n  gpu[0991-1000]: {role: standby, gpus: 8}\n"
    )
    config = folder / "config.yaml"
    config.write_text(
        "apiVersion: brctl.dev/v1\nkind: Config\ncontext: bench\nstate_dir: state\n"
        "contexts: {bench: {inventory: [{file: inventory.yaml}]}}\n"
    )
    return config


def main() -> None:
    """Measure all commands in turn, RUNS times each, and print medians."""
    argparse.ArgumentParser(description="CPU time of starting brctl.").parse_args()
    brctl = [sys.executable, "-m", "brctl"]
    script = Path(sys.executable).with_name("brctl")
    if script.exists():
        brctl = [str(script)]
    with tempfile.TemporaryDirectory() as name:
        config = inventory(Path(name))
        environment = {**os.environ, "BRCTL_CONFIG": str(config), "HOME": name}
        commands = {
            "python3 -c pass": [sys.executable, "-c", "pass"],
            "brctl --help": [*brctl, "--help"],
            "TAB (brctl __complete)": [*brctl, "__complete", "1", "brctl", "sw"],
            "brctl ls (1,000 nodes)": [*brctl, "ls"],
        }
        samples: dict[str, list[float]] = {label: [] for label in commands}
        for _ in range(RUNS):
            for label, command in commands.items():
                samples[label].append(cpu_ms(command, environment))
    floor = statistics.median(samples["python3 -c pass"])
    print(f"{'CPU ms, median of ' + str(RUNS):<26}{'ms':>8}{'x bare':>8}  goal")
    for label, values in samples.items():
        middle = statistics.median(values)
        goal = GOALS_MS.get(label)
        verdict = "" if goal is None else f"{goal:.0f} {'met' if middle <= goal else 'NOT met'}"
        print(f"{label:<26}{middle:>8.1f}{middle / floor:>8.1f}  {verdict}")


if __name__ == "__main__":
    main()
