"""A site's own log rules: `rules.d/*.yaml`, read strictly and tried on their own examples."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import yaml

from brctl.evidence.logs.catalogue import SHIPPED
from brctl.evidence.logs.reader import LineIndex, LineReader
from brctl.evidence.logs.signature import Part, Signature
from brctl.library.durable_files import private_dir, write_atomic
from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import refuse_untrusted
from brctl.model.errors import UsageError
from brctl.model.fault import FaultClass, Origin
from brctl.model.pattern_cost import why_costly

RULES_DIR = "rules.d"
TAUGHT_LIMIT = 500
"""Taught rules of one directory: each costs every later classification a little."""

_KEYS = (
    "name",
    "contains",
    "pattern",
    "part",
    "class",
    "probability",
    "origin",
    "why",
    "examples",
)
_NAME = re.compile(r"[a-z0-9]+(?:[.-][a-z0-9]+)*")
_PARTS = {"root": Part.ROOT, "victim": Part.VICTIM, "teardown": Part.TEARDOWN,
          "context": Part.CONTEXT, "harmless": Part.BENIGN}  # fmt: skip
_SHORTEST_TEXT = 3


@dataclass(frozen=True, slots=True)
class SiteRule:
    """One rule of a site, with the lines it must match.

    Attributes:
        place: `file:line` where it stands.
    """

    signature: Signature
    examples: tuple[str, ...]
    place: str


def load_log_rules(directories: Iterable[Path]) -> tuple[SiteRule, ...]:
    """Rules of every `rules.d` folder in these directories, sorted by file name.

    Raises:
        ConfigError: A file is not a valid rule file; names file, line and the nearest known key.
    """
    files = [path for d in directories for path in sorted((d / RULES_DIR).glob("*.yaml"))]
    return tuple(rule for path in files for rule in read_rule_file(path))


def signatures_with(rules: Iterable[SiteRule]) -> tuple[Signature, ...]:
    """The shipped catalogue with the site's rules first: of equals on one line they are quoted."""
    return (*(rule.signature for rule in rules), *SHIPPED)


def read_rule_file(path: Path) -> tuple[SiteRule, ...]:
    """The rules of one file."""
    refuse_untrusted(path)
    document = load_document(path)
    top = open_kind(document, "LogRules", ("rules",))
    shipped = {signature.name for signature in SHIPPED}
    rules = []
    for section in top.sections("rules"):
        rule = _read_rule(section, path)
        if rule.signature.name in shipped:
            raise section.error(f"{rule.signature.name!r} is a shipped rule's name", "name")
        rules.append(rule)
    return tuple(rules)


def write_taught_rule(directory: Path, rule: Signature, example: str) -> Path:
    """Keep a rule that a person taught, in a private file of its own that people can read.

    Raises:
        UsageError: So many were taught that somebody should sort them first.
        OSError: It cannot be written; nothing is left of it.
    """
    folder = directory / RULES_DIR
    private_dir(folder)
    path = folder / f"{rule.name.replace('.', '-')}.yaml"
    if not path.exists() and len(list(folder.glob("taught-*.yaml"))) >= TAUGHT_LIMIT:
        raise UsageError(f"{folder}: {TAUGHT_LIMIT} taught rules; join or delete some first")
    entry = {
        "name": rule.name,
        "contains": list(rule.anchors),
        "class": rule.fault.value if rule.fault else None,
        "probability": rule.strength,
        "why": rule.source,
        "examples": [example],
    }
    document = {"apiVersion": "brctl.dev/v1", "kind": "LogRules", "rules": [entry]}
    write_atomic(path, yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=1000))
    return path


def matches(line: str, rules: Iterable[SiteRule] = ()) -> tuple[str, ...]:
    """Names of the signatures that speak on one line."""
    reader = LineReader("line", LineIndex(signatures_with(rules)))
    reader.read(1, line.encode("utf-8", "replace"))
    return tuple(event.signature.name for event in reader.events())


def _read_rule(section: Section, path: Path) -> SiteRule:
    if "action" in section.data:
        problem = "only the decision tree says what to do (`brctl help classes`); take this out"
        raise section.error(problem, "action")
    section.allow(_KEYS)
    name = section.value("name", str)
    if not _NAME.fullmatch(name):
        raise section.error("use lower-case words joined by . or -", "name")
    contains = section.texts("contains")
    if not contains or any(len(text) < _SHORTEST_TEXT for text in contains):
        raise section.error(f"needs texts of at least {_SHORTEST_TEXT} characters", "contains")
    part = _PARTS[section.choice("part", list(_PARTS), "root")]
    return SiteRule(
        signature=Signature(
            name=name,
            anchors=tuple(text.lower() for text in contains),
            part=part,
            fault=_fault(section, part),
            strength=_probability(section, part),
            source=section.value("why", str),
            pattern=_pattern(section),
            origin=_origin(section),
            beyond_words=True,
        ),
        examples=section.texts("examples", ()),
        place=f"{path}:{section.line('name')}",
    )


def _fault(section: Section, part: Part) -> FaultClass | None:
    if part is not Part.ROOT:
        if "class" in section.data:
            raise section.error("only a rule with `part: root` speaks for a class", "class")
        return None
    return FaultClass(section.choice("class", [fault.value for fault in FaultClass]))


def _probability(section: Section, part: Part) -> float:
    value = section.value("probability", float, 0.8 if part is Part.ROOT else 0.0)
    if not 0.0 <= value <= 1.0:
        raise section.error("must lie between 0 and 1", "probability")
    return value


def _pattern(section: Section) -> str | None:
    text = section.optional("pattern", str)
    if text is not None:
        try:
            re.compile(text)
        except re.error as exc:
            raise section.error(f"not a regular expression: {exc}", "pattern") from exc
        problem = why_costly(text)
        if problem:
            raise section.error(problem, "pattern")
    return text


def _origin(section: Section) -> Origin | None:
    if "origin" not in section.data:
        return None
    return Origin(section.choice("origin", [origin.value for origin in Origin]))
