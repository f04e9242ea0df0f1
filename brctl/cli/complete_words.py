"""Make `completions/words.json` from the commands: python -m brctl.cli.complete_words > FILE."""

import json
import sys

import typer.main

from brctl.cli.invocation import SWITCH_FLAGS, VALUE_FLAGS
from brctl.cli.words import ALIASES, WORDS

COMMON = sorted([*VALUE_FLAGS, *SWITCH_FLAGS, "--json", "--help"])


def tree() -> dict[str, dict[str, list[str]]]:
    """Sub-commands and flags of every command path; "" is `brctl` itself."""
    found: dict[str, dict[str, list[str]]] = {
        "": {"words": sorted([*WORDS, *ALIASES]), "flags": COMMON}
    }
    for word, entry in WORDS.items():
        command = typer.main.get_command(entry.load())
        children = getattr(command, "commands", None)
        if children is None or entry.verb:
            found[word] = _leaf(children[entry.verb] if children and entry.verb else command)
            continue
        found[word] = {**_leaf(command), "words": sorted(children)}
        found |= {f"{word} {name}": _leaf(child) for name, child in children.items()}
    found |= {alias: found[word] for alias, word in ALIASES.items() if word in found}
    return dict(sorted(found.items()))


def _leaf(command: object) -> dict[str, list[str]]:
    flags = [opt for param in command.params for opt in param.opts if opt.startswith("-")]  # type: ignore[attr-defined]  # a click command
    return {"words": [], "flags": sorted({*flags, *COMMON})}


if __name__ == "__main__":
    json.dump(tree(), sys.stdout, indent=1)
    sys.stdout.write("\n")
