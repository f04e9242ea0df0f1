"""Labelled logs read without the rules that only logs of their own source ever matched.

Rules are written for logs at hand, which are right afterwards; this is what the rest knows of them (decision 0201).
"""

# ruff: noqa: E501 - prose is written whole

import json
from collections import defaultdict
from pathlib import Path

from brctl.engine.logs.classify import Blocks, Classifier
from brctl.engine.logs.log_sources import read_blocks
from brctl.evidence.logs.catalogue import SHIPPED
from brctl.model.log_verdict import LogVerdict

_REPOSITORY = slice(2, 5)


def source_of(row: dict[str, str]) -> str:
    """The repository or site a labelled log comes from; its own name where that is not known."""
    place = "/".join((row.get("source_url") or "").split("/")[_REPOSITORY])
    return row.get("family") or place or row["id"]


def verdicts_without_own_rows(corpora: list[Path]) -> list[tuple[dict[str, str], LogVerdict]]:
    """Every log's row and its verdict by the rules that some other source matched too, or none did."""
    classifier = Classifier()
    logs = [
        (json.loads(line), corpus / "logs")
        for corpus in corpora
        for line in (corpus / "cases.jsonl").read_text().splitlines()
        if line
    ]
    matched = [_rows_of(classifier, folder / row["file"]) for row, folder in logs]
    sources: dict[str, set[str]] = defaultdict(set)
    for (row, _), names in zip(logs, matched, strict=True):
        for name in names:
            sources[name].add(source_of(row))
    found = []
    for (row, folder), names in zip(logs, matched, strict=True):
        own = {name for name in names if len(sources[name]) == 1}
        others = tuple(rule for rule in SHIPPED if rule.name not in own or not _decides(rule.part))
        said = Classifier(signatures=others).classify_paths([folder / row["file"]]).overall
        found.append((row, said))
    return found


def _rows_of(classifier: Classifier, path: Path) -> set[str]:
    events, _, _ = classifier.read_events(str(path), Blocks(read_blocks(path, [])))
    return {event.signature.name for event in events}


def _decides(part: str) -> bool:
    return part not in ("victim", "teardown", "context")
