"""Who may do what: the roles of the manifest in docs/kubernetes.md, and what people do by hand.

So every test with the stand-in shows that the rights which are documented are enough.
"""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

_PAGE = Path(__file__).resolve().parents[3] / "brctl" / "docs" / "kubernetes.md"
_BY_HAND = frozenset({("patch", "nodes")})
"""`kubectl cordon` and `kubectl uncordon`, with the rights of a person."""


@dataclass(frozen=True)
class Rights:
    """Verb and resource, with its subresource, in the whole cluster or in a namespace."""

    everywhere: frozenset[tuple[str, str]]
    in_namespace: frozenset[tuple[str, str]]

    def allow(self, verb: str, resource: str, *, namespaced: bool) -> bool:
        """Whether a role has it, or a person in a test."""
        right = (verb, resource)
        return right in self.everywhere | _BY_HAND or (namespaced and right in self.in_namespace)


@cache
def load_rights() -> Rights:
    """The rules of the manifest."""
    block = _PAGE.read_text(encoding="utf-8").partition("<!-- table: kubernetes-manifest -->")[2]
    text = block.partition("```yaml")[2].partition("```")[0]
    found: dict[str, set[tuple[str, str]]] = {"ClusterRole": set(), "Role": set()}
    for document in yaml.safe_load_all(text):
        for rule in document.get("rules", ()):
            pairs = {(v, r) for r in rule["resources"] for v in rule["verbs"]}
            found[document["kind"]] |= pairs
    return Rights(frozenset(found["ClusterRole"]), frozenset(found["Role"]))
