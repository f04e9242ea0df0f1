"""Candidates for one TAB, from two small files; imports nothing but json and os.

`completions/words.json` is generated from the commands and tested for drift. The cache is written
by every sweep, diagnosis and `lab up`; a TAB never asks the network. A candidate is a word, a tab
and one line of what it means; the scripts of the shells show what their shell can show.
"""

import json
import os
import sys

WORDS_FILE = "words.json"
CACHE_FILE = "completion.json"
SAFE = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789@._:%+/,=-")
SHOWN_LIMIT = 200
QUOTES = "'\""
# These hold several values, apart by commas.
LISTS = ("states", "sort-keys")


def complete(arguments: list[str]) -> int:
    """Print candidates for word number `arguments[0]` of the line that follows; always exits 0."""
    try:
        position, line = int(arguments[0]), arguments[1:]
    except (ValueError, IndexError):
        return 0
    line += [""] * (position + 1 - len(line))
    found = candidates(line[1:position], line[position])
    lines = (f"{word}\t{' '.join(meaning.split())}\n" for word, meaning in found)
    sys.stdout.write("".join(lines))
    return 0


def candidates(before: list[str], typed: str) -> list[tuple[str, str]]:
    """Words that may stand at the cursor, each with its meaning."""
    tree = load(os.path.join(words_dir(), WORDS_FILE))
    if "--" in before:
        return []
    path, free, waiting = read_line(tree, before)
    if waiting is None and typed.startswith("--") and "=" in typed:
        flag, _, value = typed.partition("=")
        kind = flags_at(tree, path).get(flag, ["", ""])[1]
        found = values(tree, kind, path, before, value)
        return [(f"{flag}={word}", meaning) for word, meaning in found]
    if waiting is not None:
        return values(tree, waiting, path, before, typed)
    if typed.startswith("-"):
        return matching({flag: about[0] for flag, about in flags_at(tree, path).items()}, typed)
    here = tree.get(path, {})
    found = [] if free else matching(here.get("words", {}), typed)
    kinds = here.get("arguments", [])
    if kinds:
        found += values(tree, kinds[min(free, len(kinds) - 1)], path, before, typed)
    return found


def read_line(tree: dict, before: list[str]) -> tuple[str, int, "str | None"]:  # type: ignore[type-arg]
    """Command path, how many free arguments stand, and of what kind the word at the cursor is.

    The kind is None unless a flag waits for its value.
    """
    path, free, waiting = "", 0, None
    for word in before:
        if waiting is not None:
            waiting = None
        elif word.startswith("-"):
            about = flags_at(tree, path).get(word.partition("=")[0], ["", None])
            waiting = about[1] if "=" not in word else None
        elif not free and f"{path} {word}".strip() in tree:
            path = f"{path} {word}".strip()
        else:
            free += 1
    return path, free, waiting


def flags_at(tree: dict, path: str) -> dict:  # type: ignore[type-arg]  # as the file holds them
    """Flag -> its meaning and the kind of its value, None for a switch; common ones included."""
    return {**tree.get("", {}).get("flags", {}), **tree.get(path, {}).get("flags", {})}


def values(
    tree: dict,  # type: ignore[type-arg]
    kind: "str | None",
    path: str,
    before: list[str],
    typed: str,
) -> list[tuple[str, str]]:
    """Candidates of one kind: names of this site from the cache, or words of brctl."""
    known = load(cache_path(context_of(path, before)))
    if kind == "nodes":
        groups, nodes = of_site(known.get("groups")), of_site(known.get("nodes"))
        return last_of_set({**nodes, **groups}, typed)
    lists = tree.get("", {}).get("lists", {})
    words = {**lists.get(kind, {}), **of_site(known.get(kind))}
    return last_of_set(words, typed, ",") if kind in LISTS else matching(words, typed)


def last_of_set(words: dict, typed: str, marks: str = ",!&^") -> list[tuple[str, str]]:  # type: ignore[type-arg]
    """The last name of a set that is being typed; an open quote is the shell's."""
    typed = typed.lstrip(QUOTES)
    cut = max((typed.rfind(mark) for mark in marks), default=-1) + 1
    return [(typed[:cut] + word, meaning) for word, meaning in matching(words, typed[cut:])]


def matching(words: dict, typed: str) -> list[tuple[str, str]]:  # type: ignore[type-arg]
    """Words that begin so, `--long` before `-s`."""
    found = [(word, str(about)) for word, about in words.items() if word.startswith(typed)]
    return found[:SHOWN_LIMIT]


def of_site(value: object) -> dict:  # type: ignore[type-arg]
    """Names of the cache; a label that a shell would run when it stands in the line is left out."""
    names = value if isinstance(value, dict) else {}
    return {name: about for name, about in names.items() if not set(name) - SAFE}


def context_of(path: str, before: list[str]) -> str:
    """The context a line speaks of; "" for the one that is used without a word."""
    if path.startswith("lab"):
        return "lab"
    for index, word in enumerate(before):
        if word == "--context" and index + 1 < len(before):
            return before[index + 1]
        if word.startswith("--context="):
            return word.partition("=")[2]
    return os.environ.get("BRCTL_CONTEXT", "")


def words_dir() -> str:
    """The folder of the generated word list, installed or in a checkout."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "_shipped", "completions")
    return installed if os.path.isdir(installed) else os.path.join(package, "..", "completions")


def cache_path(context: str = "") -> str:
    """Where names for completion are kept: of one context, or of the newest that was looked at."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ.get("HOME", "/"), ".cache")
    folder = os.path.join(cache, "brctl")
    own = os.path.join(folder, f"completion-{context}.json")
    use_own = context and "/" not in context and os.path.exists(own)
    return own if use_own else os.path.join(folder, CACHE_FILE)


def load(path: str) -> dict:  # type: ignore[type-arg]  # whatever the file holds
    """A JSON object, or nothing: a TAB never fails."""
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
