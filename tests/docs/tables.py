"""The tables of the documents, each made from the table of the code that it shows."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta

from brctl.actions.registry import about_verbs
from brctl.backends.kubernetes.permissions import PERMISSIONS
from brctl.evidence.operators import OPERATORS
from brctl.library.checks import load_checks
from brctl.library.config import SshSettings
from brctl.library.file_tables import (
    CONFIG,
    INVENTORY,
    SBATCH_OPTIONS,
    Each,
    Holds,
    Many,
    OneOf,
    Table,
    Value,
)
from brctl.library.file_words import CONFIG_WORDS, INVENTORY_WORDS, words_of
from brctl.library.parameters import SOURCES
from brctl.library.playbooks import load_playbooks
from brctl.library.shipped import shipped_dir
from brctl.library.sweep_settings import SweepSettings
from brctl.model.units import describe_duration
from brctl.playbook.validate import FACT_NAMES, FAILED_NAMES, JOB_NAMES, RUN_NAMES, VERDICT_NAMES
from brctl.playbook.verbs import VERBS
from brctl.view.fault_classes import classes_page
from brctl.view.help import TOPICS
from brctl.watch.rules import RULES
from tests.docs import kubernetes_rights
from tests.docs.documents import documents
from tests.docs.layers import picture
from tests.docs.markdown import code, markdown


def _topic(name: str) -> str:
    return f"```\n{TOPICS[name]}\n```"


def _kubernetes() -> str:
    rows = (
        (row.resource, ", ".join(row.verbs), row.scope, row.purpose, row.need)
        for row in PERMISSIONS
    )  # fmt: skip
    return markdown("resource | verbs | scope | for | needed", rows)


def _kubernetes_manifest() -> str:
    return f"```yaml\n{kubernetes_rights.manifest()}\n```"


def _exit_codes() -> str:
    return markdown("code | name | means", (x.split(maxsplit=2) for x in _lines("exit-codes")))


def _lines(topic: str) -> list[str]:
    return TOPICS[topic].splitlines()


def _keys(table: Table, words: Mapping[str, str], kind: str) -> str:
    rows = (
        (f"`{shown}`", _holds(value), words_of(words, path), _default(f"{kind}.{path}"))
        for shown, path, value in _walk(table)
    )
    return markdown("key | holds | meaning | default", rows)


def _walk(table: Table, shown: str = "", path: str = "") -> Iterator[tuple[str, str, Value]]:
    """Every key below a table: as people write it, as its sentence is filed, what it holds."""
    for key, value in table.rows.items():
        yield f"{shown}{key}", f"{path}{key}", value
        for inner, names in _tables_in(value):
            yield from _walk(inner, f"{shown}{key}{names}.", f"{path}{key}.")


def _tables_in(value: Value, names: str = "") -> Iterator[tuple[Table, str]]:
    match value:
        case Table():
            yield value, names
        case Each():
            yield from _tables_in(value.value, f"{names}.NAME")
        case Many():
            yield from _tables_in(value.value, f"{names}[]")
        case OneOf():
            for kind in value.kinds:
                yield from _tables_in(kind, names)


def _holds(value: Value) -> str:
    match value:
        case Holds():
            return str(value)
        case Table():
            return "mapping"
        case Each():
            return f"names, each {_holds(value.value)}" + (" or nothing" if value.bare else "")
        case Many():
            return f"list of {_holds(value.value)}"
        case OneOf():
            return " or ".join(_holds(kind) for kind in value.kinds)
        case _:
            return code(value)


_DEFAULTS: Mapping[str, object] = {"config.ssh": SshSettings(), "config.sweep": SweepSettings()}


def _default(path: str) -> str:
    """What a key means when it is left out, where the reader's own table says it."""
    section, _, key = path.rpartition(".")
    settings = _DEFAULTS.get(section)
    if hasattr(settings, f"{key}_s"):
        return describe_duration(getattr(settings, f"{key}_s"))
    found = getattr(settings, key, None)
    if isinstance(found, timedelta):
        return describe_duration(found.total_seconds())
    return "" if found in (None, "") else str(found)


def _verbs() -> str:
    about = about_verbs()
    rows = (
        (f"`{name}`", about[name], _given(verb.required, verb.optional), code(sorted(verb.gives)),
         str(verb.safety), "yes" if verb.undoable else "")
        for name, verb in sorted(VERBS.items())
    )  # fmt: skip
    return markdown("verb | does | arguments | gives | safety | undo", rows)


def _given(required: Iterable[str], optional: Iterable[str]) -> str:
    return code([*sorted(required), *(f"[{name}]" for name in sorted(optional))])


def _playbooks() -> str:
    found = load_playbooks([shipped_dir("playbooks")])
    rows = ((f"`{name}`", found[name].title, str(found[name].risk)) for name in sorted(found))
    return markdown("playbook | does | risk", rows)


def _names() -> str:
    roots = {
        "verdict": VERDICT_NAMES, "job": JOB_NAMES, "run": RUN_NAMES,
        "failed (in hooks, and after a failure)": FAILED_NAMES,
        "facts[node] (with `for_each`)": FACT_NAMES,
        "verdicts[node] (with `for_each`)": VERDICT_NAMES,
    }  # fmt: skip
    return markdown("name | parts", ((root, code(sorted(n))) for root, n in roots.items()))


def _checks() -> str:
    rows = (
        (f"`{check.name}`", str(check.level), check.title, ", ".join(sorted(check.needs)))
        for check in load_checks([shipped_dir("checks")]).values()
    )
    return markdown("check | level | looks at | needs", rows)


def _operators() -> str:
    rows = (
        (f"`{name}`", operator.operand + (", since the last reading" if operator.growth else ""))
        for name, operator in OPERATORS.items()
    )
    return markdown("operator | operand", rows)


def _fault_classes() -> str:
    rows = (
        (f"`{row['class']}`", row["title"], row["words"], row["origin"], _first_move(row),
         row["cost_if_wrong"] or "")
        for row in json.loads(json.dumps(classes_page().rows))
    )  # fmt: skip
    return markdown("class | is | know | origin | first move | costs when wrong", rows)


def _first_move(row: Mapping[str, Mapping[str, str | None]]) -> str:
    move = row["first_move"]
    playbook = f" (`{move['playbook']}`)" if move["playbook"] else ""
    return f"{move['do']}{playbook}: {move['say']}"


def _watch_rules() -> str:
    rows = (
        (f"`{name}`", rule.title, f"{rule.every_s:g} s", str(rule.looks),
         "a diagnosis" if rule.diagnosed else "people are told")
        for name, rule in RULES.items()
    )  # fmt: skip
    return markdown("rule | suspects | every | looks that confirm it | then", rows)


TABLES: Mapping[str, Callable[[], str]] = {
    "checks": _checks,
    "config-keys": lambda: _keys(CONFIG, CONFIG_WORDS, "config"),
    "environment": lambda: _topic("environment"),
    "exit-codes": _exit_codes,
    "expression-names": _names,
    "inventory-keys": lambda: _keys(INVENTORY, INVENTORY_WORDS, "inventory"),
    "documents": documents,
    "kubernetes-rights": _kubernetes,
    "kubernetes-manifest": _kubernetes_manifest,
    "fault-classes": _fault_classes,
    "layers": picture,
    "operators": _operators,
    "parameter-sources": lambda: code(SOURCES),
    "sbatch-options": lambda: code(SBATCH_OPTIONS),
    "selectors": lambda: _topic("selectors"),
    "shipped-playbooks": _playbooks,
    "verbs": _verbs,
    "watch-rules": _watch_rules,
}
"""Each table by the name that a page calls it."""
