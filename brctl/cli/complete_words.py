"""Make `completions/words.json` from the commands: python -m brctl.cli.complete_words > FILE."""

import json
import sys
from collections.abc import Iterable, Mapping

from typer.core import TyperCommand, TyperGroup

from brctl.cli.commands.completions import FILES
from brctl.cli.invocation import COLOURS, FORMATS, VALUE_FLAGS
from brctl.cli.words import ALIASES, WORDS
from brctl.lab.faults import FAULTS
from brctl.library.file_tables import TRANSPORT_NAMES
from brctl.model.fault_catalogue import CATALOGUE
from brctl.model.selectors import STATES
from brctl.view.fleet.nodes_table import OWN_COLUMNS
from brctl.view.help import TOPICS
from brctl.view.schemas.kinds import DOCUMENTS

Entry = dict[str, object]

NODE_METAVARS = ("NODE", "NODES")
ARGUMENT_KINDS: Mapping[str, str] = {
    "job": "jobs", "verdict_id": "verdicts", "run": "runs", "runs": "runs",
    "incident": "incidents", "fault": "faults", "shell": "shells", "topic": "topics",
    "kind": "kinds", "pattern": "checks",
}  # fmt: skip
"""What an argument of this name is, in any command."""

OWN_ARGUMENT_KINDS: Mapping[str, str] = {
    "check explain": "checks", "play show": "playbooks", "play plan": "playbooks",
    "play run": "playbooks",
}  # fmt: skip
"""What the first argument of these commands is, whatever it is called."""

FLAG_KINDS: Mapping[str, str] = {
    "--nodes": "nodes", "-w": "nodes", "--exclude": "nodes", "-x": "nodes", "--node": "nodes",
    "--with": "nodes", "--if-lost": "nodes", "--golden": "nodes",
    "--context": "contexts", "--output": "formats",
    "-o": "formats", "--color": "colours", "--transport": "transports", "--job": "jobs",
    "--sort": "sort-keys", "--columns": "sort-keys", "--state": "states",
    "--profile": "profiles", "--lock": "locks", "--fail-on": "fail-on", "--verdict": "verdicts",
    "--fault": "faults", "--class": "classes", "--checks": "checks", "--kind": "schemas",
    "--isolation": "isolations", "--format": "export-formats",
}  # fmt: skip

COMMON_FLAGS: Mapping[str, str] = {
    "--nodes": "only these nodes", "-w": "only these nodes", "--exclude": "not these nodes",
    "-x": "not these nodes", "--context": "which context of the configuration",
    "--config": "this configuration file", "--output": "in which form", "-o": "in which form",
    "--json": "one document", "--out": "write the answer to a file",
    "--quiet": "no hints on stderr", "-q": "no hints on stderr",
    "--color": "auto, always or never", "--no-input": "never ask",
    "--readonly": "refuse every change", "--timeout": "longest a command on a node may take",
    "--fanout": "nodes at once", "-f": "nodes at once", "--transport": "how nodes are reached",
    "--help": "show help",
}  # fmt: skip
"""The flags of `brctl help`, in few words."""

WATCH: list[str | None] = ["look again every so many seconds", None]
"""`--watch` of the commands that only look; its value may be left out."""

LISTS: Mapping[str, Mapping[str, str]] = {
    "formats": dict(zip(FORMATS, (
        "for people", "for people, more columns", "one document", "one object a line",
        "the document as YAML", "names only", "a line for each row", "for Nagios",
        "for Prometheus", "one page to send",
    ), strict=True)),
    "colours": dict(zip(COLOURS, ("on a terminal", "into pipes too", "no colour"), strict=True)),
    "transports": dict.fromkeys(TRANSPORT_NAMES, "how nodes are reached"),
    "sort-keys": dict.fromkeys(OWN_COLUMNS, "column of the list"),
    "states": {state: "as the newest sweeps saw it" for state in STATES},
    "profiles": {
        "sweep": "what is safe beside jobs, often",
        "preflight": "before a job starts",
        "storage": "checkpoints and file systems",
    },
    "locks": {"skip": "end, another sweeps", "wait": "for the other", "fail": "exit 75"},
    "fail-on": {"warn": "warnings exit 1", "crit": "only faults count"},
    "faults": {fault.name: fault.say.format(node="the node") for fault in FAULTS.values()},
    "classes": {str(fault): about.title for fault, about in CATALOGUE.items()},
    "shells": dict.fromkeys(FILES, "completion script"),
    "topics": dict.fromkeys([*TOPICS, "classes"], "of brctl help"),
    "kinds": dict.fromkeys(sorted(DOCUMENTS), "document"),
    "schemas": dict.fromkeys(("playbook", "guards", "config", "inventory", "job"), "file"),
    "isolations": {"auto": "what is allowed", "none": "no privileges", "netns": "as root"},
    "export-formats": {"md": "to edit", "json": "for programs", "html": "one page to send"},
}  # fmt: skip
"""Values that are the same everywhere; those of a site are in the cache."""


def tree() -> dict[str, Entry]:
    """Sub-commands, flags and kinds of arguments of every command path; "" is `brctl` itself."""
    first = {word: entry.help for word, entry in WORDS.items()}
    first |= {alias: f"the same as {word}" for alias, word in ALIASES.items()}
    flags = {name: [about, _flag_kind(name)] for name, about in COMMON_FLAGS.items()}
    flags["--watch"] = WATCH
    found: dict[str, Entry] = {"": {"words": first, "flags": flags, "lists": LISTS}}
    for word, entry in WORDS.items():
        command = entry.command()
        children: Mapping[str, TyperCommand] = getattr(command, "commands", {})
        found[word] = _leaf(word, command)
        if children:
            found[word]["words"] = {name: _line(child) for name, child in children.items()}
        for name, child in children.items():
            found[f"{word} {name}"] = _leaf(f"{word} {name}", child)
    for alias, word in ALIASES.items():
        same = [path for path in found if path == word or path.startswith(f"{word} ")]
        found |= {alias + path[len(word) :]: found[path] for path in same}
    return dict(sorted(found.items()))


def _flag_kind(name: str) -> str | None:
    return FLAG_KINDS.get(name, "") if name in VALUE_FLAGS else None


def _line(command: TyperCommand | TyperGroup) -> str:
    """The first sentence of a command's help."""
    return " ".join((command.help or "").split("\n\n")[0].split())


def _leaf(path: str, command: TyperCommand | TyperGroup) -> Entry:
    flags: dict[str, list[str | None]] = {}
    kinds: list[str] = []
    for param in command.params:
        if param.param_type_name == "argument":
            kinds.append(_argument_kind(path, str(param.name), str(param.metavar), kinds))
            continue
        takes = not getattr(param, "is_flag", False)
        for name in sorted(param.opts, key=len, reverse=True):
            about = getattr(param, "help", None) or "show this message"
            flags[name] = [about, _kind_of(param.opts) if takes else None]
    if path in {f"{word} {v}".strip() for word, entry in WORDS.items() for v in entry.watched}:
        flags["--watch"] = WATCH
    return {"flags": flags, **({"arguments": kinds} if any(kinds) else {})}


def _argument_kind(path: str, name: str, metavar: str, before: list[str]) -> str:
    if metavar in NODE_METAVARS:
        return "nodes"
    own = OWN_ARGUMENT_KINDS.get(path) if not before else None
    return own or ARGUMENT_KINDS.get(name, "")


def _kind_of(names: Iterable[str]) -> str:
    return next((FLAG_KINDS[name] for name in names if name in FLAG_KINDS), "")


if __name__ == "__main__":
    json.dump(tree(), sys.stdout, indent=1)
    sys.stdout.write("\n")
