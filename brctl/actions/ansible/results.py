"""What became of each host, from the lines of our callback; a host nobody speaks of is not ok."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from brctl.model.foreign_json import ForeignJsonError, read_foreign_json
from brctl.view.redact import redact

LIMIT_BYTES = 8 << 20
TEXT_LIMIT = 200


@dataclass(frozen=True, slots=True)
class AnsibleResults:
    """The nodes of a step by what became of them.

    Attributes:
        complete: Ansible told its own summary; without it nothing is known of anybody.
        absent: Nodes that no play was for.
        reasons: Why, by node: of those that failed or were not reached.
        changes: The tasks that changed something, or would, by node.
        failed_elsewhere: Other hosts the playbook spoke to, such as localhost, that failed.
    """

    complete: bool = False
    ok: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    reasons: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failed_elsewhere: tuple[str, ...] = ()


def read_results(path: Path, nodes: Sequence[str]) -> AnsibleResults:
    """The results of these nodes; damaged and foreign lines say nothing."""
    counts: Mapping[str, Mapping[str, object]] | None = None
    reasons: dict[str, str] = {}
    changes: dict[str, list[str]] = {}
    for row in _rows(path):
        host, task = str(row.get("host")), str(row.get("task"))[:TEXT_LIMIT]
        match row.get("event"):
            case "stats":
                counts = _counts(row.get("hosts"))
            case "changed":
                changes.setdefault(host, []).append(task)
            case "failed" | "unreachable":
                message = redact(" ".join(str(row.get("msg")).split()))[:TEXT_LIMIT]
                reasons[host] = f"{task}: {message}" if message else task
    if counts is None:
        return AnsibleResults(absent=tuple(nodes), reasons=reasons)
    unreachable = tuple(n for n in nodes if _has(counts, n, "unreachable"))
    bad = tuple(n for n in nodes if _has(counts, n, "failures") and n not in unreachable)
    ok = tuple(n for n in nodes if n in counts and n not in (*bad, *unreachable))
    return AnsibleResults(
        complete=True,
        ok=ok,
        changed=tuple(n for n in nodes if _has(counts, n, "changed")),
        failed=bad,
        unreachable=unreachable,
        absent=tuple(n for n in nodes if n not in counts),
        reasons=reasons,
        changes={host: tuple(tasks) for host, tasks in changes.items()},
        failed_elsewhere=tuple(sorted(h for h in counts if h not in nodes and _is_bad(counts, h))),
    )


def _rows(path: Path) -> Iterator[Mapping[str, object]]:
    if not path.exists():
        return
    with path.open("rb") as stream:
        text = stream.read(LIMIT_BYTES).decode("utf-8", "replace")
    for line in text.splitlines():
        try:
            row = read_foreign_json(line)
        except ForeignJsonError:
            continue
        if isinstance(row, dict):
            yield row


def _counts(value: object) -> Mapping[str, Mapping[str, object]] | None:
    if not isinstance(value, dict):
        return None
    return {str(host): row for host, row in value.items() if isinstance(row, dict)}


def _has(counts: Mapping[str, Mapping[str, object]], host: str, key: str) -> bool:
    return bool(counts.get(host, {}).get(key))


def _is_bad(counts: Mapping[str, Mapping[str, object]], host: str) -> bool:
    return _has(counts, host, "failures") or _has(counts, host, "unreachable")
