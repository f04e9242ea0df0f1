"""The JSON documents, kind by kind, from the schemas that `brctl schema show` prints."""

from collections.abc import Mapping
from typing import Any

import msgspec

from brctl.view.schema import Envelope
from brctl.view.schemas.kinds import DOCUMENTS
from tests.docs.markdown import code, markdown

Schema = Mapping[str, Any]


def documents() -> str:
    """The keys of the envelope, then those of each kind."""
    parts = ["### Every document", _keys(*_opened(Envelope))]
    for kind in sorted(DOCUMENTS):
        schema, definitions = _opened(DOCUMENTS[kind])
        parts += [
            f"### {kind}",
            schema.get("description", ""),
            _keys(schema, definitions, Envelope),
        ]
    return "\n\n".join(part for part in parts if part)


def _opened(kind: type) -> tuple[Schema, Schema]:
    found = msgspec.json.schema(kind)
    definitions = found["$defs"]
    return definitions[found["$ref"].rsplit("/", 1)[-1]], definitions


def _keys(schema: Schema, definitions: Schema, without: type | None = None) -> str:
    common = _opened(without)[0]["properties"] if without else {}
    rows = [
        (f"`{key}`", _holds(value, definitions))
        for key, value in schema["properties"].items()
        if key not in common
    ]
    return markdown("key | holds", rows)


def _holds(value: Schema, definitions: Schema, depth: int = 0) -> str:
    """What a key holds; a mapping is written with its keys, one level deep."""
    if "anyOf" in value:
        return " or ".join(_holds(each, definitions, depth) for each in value["anyOf"])
    if "$ref" in value:
        return _mapping(definitions[value["$ref"].rsplit("/", 1)[-1]], depth)
    if "enum" in value:
        return code(str(word) for word in value["enum"])
    if value.get("type") == "array":
        return f"list of {_holds(value.get('items', {}), definitions, depth)}"
    return str(value.get("type", "anything")).replace("object", "mapping")


def _mapping(schema: Schema, depth: int) -> str:
    return "mapping: " + code(schema.get("properties", {})) if depth == 0 else "mapping"
