"""The command tree's first level as a table, so that help and completion import no command."""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    import typer
    from typer.core import TyperCommand, TyperGroup


@dataclass(frozen=True, slots=True)
class Word:
    """One first-level command.

    Attributes:
        module: Its module below `brctl.cli.commands`, which holds a Typer `app`.
        help: One sentence for the overview.
        verb: Sub-command of `app` this word stands for; "" passes the arguments on.
        keeps: Common flags this command gives its own meaning.
        watched: Seconds between two looks of `--watch` by sub-command, "" for the word alone;
            empty for a word that is done once.
        own_watch: Sub-commands whose `--watch` is a flag of their own.
        selects: Sub-commands that obey -w and -x, "" for the word alone; others refuse them.
        only_w: Sub-commands that obey -w and have no use for -x.
    """

    module: str
    help: str
    verb: str = ""
    keeps: tuple[str, ...] = ()
    watched: Mapping[str, float] = field(default_factory=dict)
    own_watch: tuple[str, ...] = ()
    selects: tuple[str, ...] = ()
    only_w: tuple[str, ...] = ()

    def load(self) -> "typer.Typer":
        """Import the command; Typer comes with it, which completion must not pay for."""
        module = importlib.import_module(f"brctl.cli.commands.{self.module}")
        return cast("typer.Typer", module.app)

    def command(self) -> "TyperCommand | TyperGroup":
        """What the word runs: the command of its module, or the one sub-command it stands for."""
        from typer.main import get_command

        whole = get_command(self.load())
        children = getattr(whole, "commands", {})
        return cast("TyperCommand | TyperGroup", children.get(self.verb, whole))


_ALONE = ("",)

WORDS: Mapping[str, Word] = {
    "status": Word(
        "status",
        "one screen: nodes, jobs, open verdicts, next command",
        watched={"": 2.0},
        selects=_ALONE,
    ),
    "ls": Word(
        "nodes",
        "list nodes with state, check and reason",
        "list",
        watched={"": 2.0},
        selects=_ALONE,
    ),
    "nodes": Word(
        "nodes",
        "one node with its history; who differs; labels; fold, expand, count",
        selects=("", "list", "diff", "fold", "expand", "count"),
    ),
    "sweep": Word(
        "sweep", "health sweep of many nodes (cron's verb)", watched={"": 60.0}, selects=_ALONE
    ),
    "dx": Word(
        "dx", "evidence to verdict, for a job or for nodes", watched={"": 30.0}, selects=_ALONE
    ),
    "why": Word("verdict", "explain a verdict down to the raw line", "explain"),
    "fix": Word("fix", "run the playbook a verdict proposes"),
    "cordon": Word("cordon", "take nodes out of service, with a reason", "cordon", selects=_ALONE),
    "uncordon": Word("cordon", "give cordoned nodes back", "uncordon", selects=_ALONE),
    "swap": Word(
        "cordon", "replace a node by a standby and resume the job", "swap", selects=_ALONE
    ),
    "verdict": Word(
        "verdict", "list, show, explain, export, dismiss verdicts", only_w=("confirm",)
    ),
    "run": Word(
        "run", "one command on many nodes, equal answers gathered", keeps=("-h",), selects=_ALONE
    ),
    "cp": Word("cp", "copy a file to many nodes", selects=_ALONE),
    "ssh": Word("ssh", "a shell on one node"),
    "burnin": Word("burnin", "load GPUs near their limit and check every result", selects=("run",)),
    "ecc": Word(
        "ecc", "GPU memory errors, what they ask for, how they moved", selects=("show", "pending")
    ),
    "check": Word("check", "list, run and explain checks", selects=("run", "pairs", "learn")),
    "logs": Word("logs", "classify training and system logs"),
    "stacks": Word("stacks", "stacks of all ranks, and who is the odd one out", selects=("dump",)),
    "flight-recorder": Word("flight_recorder", "analyse collective dumps of all ranks"),
    "nccl": Word(
        "nccl",
        "which node or link fails collectives: bisect; what NCCL says of a hang: ras",
        selects=("bisect",),
    ),
    "replay": Word("replay", "replay a reduced job in groups to find a bad machine"),
    "play": Word("play", "list, plan, run, resume, roll back playbooks"),
    "standby": Word(
        "standby",
        "the pool that swaps draw from: list, warm, test, size",
        selects=("add", "remove", "warm", "test"),
    ),
    "ckpt": Word("ckpt", "newest complete and undamaged checkpoint"),
    "job": Word(
        "job",
        "init, show, start, stop, watch a training job; change its code",
        watched={"show": 5.0},
        selects=("init",),
    ),
    "top": Word("top", "a job's ranks and nodes, live, the slowest first"),
    "watch": Word("watch", "look all the time, and act as far as a policy allows", selects=_ALONE),
    "lab": Word(
        "lab",
        "the embedded cluster: up, break, heal, demo",
        keeps=("--nodes",),
        own_watch=("demo",),
    ),
    "simulate": Word("simulate", "months of faults on a made-up fleet: policies, sweeps, paper"),
    "tui": Word("tui", "fleet triage in the terminal", only_w=_ALONE),
    "incident": Word(
        "incident",
        "one time line of a fault, or one file: show, note, record, replay, redact",
        only_w=("record", "import"),
    ),
    "ingest": Word("ingest", "take alerts from outside: ingest alertmanager"),
    "notify": Word("notify", "who is told outside: list, render, test"),
    "report": Word(
        "report",
        "the fleet on one page; what comes and goes; how verdicts held",
        selects=("flappers", "lemons", "fleet"),
    ),
    "doctor": Word(
        "doctor", "is this controller able to work: ssh, tools, permissions", selects=("", "ssh")
    ),
    "schema": Word("schema", "JSON Schemas of documents and files"),
    "inventory": Word(
        "inventory", "who is there, and which source says so", selects=("show", "trust")
    ),
    "schedule": Word(
        "schedule",
        "print systemd or cron units for regular sweeps",
        selects=("systemd", "cron"),
        own_watch=("systemd",),
    ),
    "config": Word(
        "config", "where configuration comes from; sudoers lines for nodes", only_w=("init",)
    ),
    "completions": Word("completions", "completion script for bash, zsh or fish"),
    "help": Word("help", "exit-codes, selectors, output, environment, classes"),
}

ALIASES: Mapping[str, str] = {
    "diagnose": "dx", "v": "verdict", "playbook": "play",
}  # fmt: skip

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Every day": ("status", "ls", "sweep", "dx", "why", "fix", "cordon", "uncordon", "swap"),
    "Look closer": (
        "tui", "top", "verdict", "nodes", "check", "logs", "stacks", "flight-recorder", "nccl",
        "replay", "burnin", "ecc", "incident", "report",
    ),
    "Act": ("play", "ckpt", "job", "standby", "watch", "run", "cp", "ssh"),
    "Practise and set up": (
        "lab", "simulate", "doctor", "notify", "ingest", "inventory", "schedule", "config",
        "schema", "completions", "help",
    ),
}  # fmt: skip

BRIDGE_WORDS = frozenset(
    {
        "addbr", "delbr", "addif", "delif", "setageing", "setbridgeprio", "setfd", "sethello",
        "setmaxage", "setpathcost", "setportprio", "show", "showmacs", "showstp", "stp", "hairpin",
    }
)  # fmt: skip
"""Commands of bridge-utils' `brctl`, the other program of this name."""
