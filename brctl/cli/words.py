"""The command tree's first level as a table, so that help and completion import no command."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One first-level command.

    Attributes:
        module: Where its Typer `app` is.
        help: One sentence for the overview.
        verb: Sub-command of `app` this word stands for; "" passes the arguments on.
        keeps: Common flags this command gives its own meaning.
    """

    module: str
    help: str
    verb: str = ""
    keeps: tuple[str, ...] = ()


WORDS: Mapping[str, Word] = {
    "status": Word("brctl.cli.status", "one screen: nodes, jobs, open verdicts, next command"),
    "ls": Word("brctl.cli.nodes", "list nodes with state, check and reason", "list"),
    "nodes": Word("brctl.cli.nodes", "one node with its history; who differs; label nodes"),
    "sweep": Word("brctl.cli.sweep", "health sweep of many nodes (cron's verb)"),
    "dx": Word("brctl.cli.diagnose", "evidence to verdict, for a job or for nodes"),
    "why": Word("brctl.cli.verdict", "explain a verdict down to the raw line", "explain"),
    "fix": Word("brctl.cli.fix", "run the playbook a verdict proposes"),
    "cordon": Word("brctl.cli.cordon", "take nodes out of service, with a reason", "cordon"),
    "uncordon": Word("brctl.cli.cordon", "give cordoned nodes back", "uncordon"),
    "swap": Word("brctl.cli.cordon", "replace a node by a standby and resume the job", "swap"),
    "verdict": Word("brctl.cli.verdict", "list, show, explain, dismiss verdicts"),
    "run": Word("brctl.cli.run", "one command on many nodes, equal answers gathered"),
    "cp": Word("brctl.cli.cp", "copy a file to many nodes"),
    "ssh": Word("brctl.cli.ssh", "a shell on one node"),
    "burnin": Word("brctl.cli.burnin", "load GPUs near their limit and check every result"),
    "ecc": Word("brctl.cli.ecc", "GPU memory errors, what they ask for, how they moved"),
    "check": Word("brctl.cli.check", "list, run and explain checks"),
    "logs": Word("brctl.cli.logs", "classify training and system logs"),
    "stacks": Word("brctl.cli.stacks", "stacks of all ranks, and who is the odd one out"),
    "flight-recorder": Word("brctl.cli.flight_recorder", "analyse collective dumps of all ranks"),
    "nccl": Word("brctl.cli.nccl", "which node or link fails collectives: nccl bisect"),
    "replay": Word("brctl.cli.replay", "replay a reduced job in groups to find a bad machine"),
    "play": Word("brctl.cli.play", "list, plan, run, resume, roll back playbooks"),
    "standby": Word("brctl.cli.standby", "the pool that swaps draw from: list, warm, test, size"),
    "ckpt": Word("brctl.cli.ckpt", "newest complete and undamaged checkpoint"),
    "job": Word("brctl.cli.job", "show, start, stop, watch a training job; change its code"),
    "lab": Word("brctl.cli.lab", "the embedded cluster: up, break, heal, demo", keeps=("--nodes",)),
    "tui": Word("brctl.cli.tui", "fleet triage in the terminal"),
    "incident": Word("brctl.cli.incident", "one time line of a fault: list, show, note, export"),
    "ingest": Word("brctl.cli.ingest", "take alerts from outside: ingest alertmanager"),
    "notify": Word("brctl.cli.notify", "who is told outside: list, render, test"),
    "report": Word("brctl.cli.report", "the fleet on one page; what comes and goes"),
    "doctor": Word("brctl.cli.doctor", "is this controller able to work: ssh, tools, permissions"),
    "schema": Word("brctl.cli.schema", "JSON Schemas of documents and files"),
    "inventory": Word("brctl.cli.inventory", "who is there, and which source says so"),
    "schedule": Word("brctl.cli.schedule", "print systemd or cron units for regular sweeps"),
    "config": Word("brctl.cli.config", "where configuration comes from"),
    "completions": Word("brctl.cli.completions", "completion script for bash, zsh or fish"),
    "help": Word("brctl.cli.help", "exit-codes, selectors, output, environment"),
}

ALIASES: Mapping[str, str] = {
    "diagnose": "dx", "v": "verdict", "playbook": "play",
}  # fmt: skip

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Every day": ("status", "ls", "sweep", "dx", "why", "fix", "cordon", "uncordon", "swap"),
    "Look closer": (
        "tui", "verdict", "nodes", "check", "logs", "stacks", "flight-recorder", "nccl", "replay",
        "burnin", "ecc", "incident", "report",
    ),
    "Act": ("play", "ckpt", "job", "standby", "run", "cp", "ssh"),
    "Practise and set up": (
        "lab", "doctor", "notify", "ingest", "inventory", "schedule", "config", "schema",
        "completions", "help",
    ),
}  # fmt: skip

BRIDGE_WORDS = frozenset(
    {
        "addbr", "delbr", "addif", "delif", "setageing", "setbridgeprio", "setfd", "sethello",
        "setmaxage", "setpathcost", "setportprio", "show", "showmacs", "showstp", "stp", "hairpin",
    }
)  # fmt: skip
"""Commands of bridge-utils' `brctl`, the other program of this name."""
