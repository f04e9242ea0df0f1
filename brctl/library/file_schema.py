"""JSON Schemas of config.yaml, inventories and job.yaml, from the tables their readers go by."""

from collections.abc import Mapping
from typing import Any

from brctl.library.file_tables import CONFIG, INVENTORY, JOB, Each, Holds, Many, OneOf, Table, Value
from brctl.library.file_words import CONFIG_WORDS, INVENTORY_WORDS, JOB_WORDS, words_of
from brctl.model import API_VERSION
from brctl.model.units import DURATION_PATTERN

Schema = dict[str, Any]
Descriptions = Mapping[str, str]
DRAFT = "https://json-schema.org/draft/2020-12/schema"
DURATION: Schema = {"type": "string", "pattern": rf"^\s*({DURATION_PATTERN})+\s*$"}

_PLAIN: Mapping[Holds, Schema] = {
    Holds.TEXT: {"type": "string"},
    Holds.WHOLE: {"type": "integer"},
    Holds.TRUTH: {"type": "boolean"},
    Holds.DURATION: DURATION,
    Holds.TEXTS: {"type": "array", "items": {"type": "string"}},
    Holds.LABEL: {"type": ["string", "number"]},
    Holds.COUNT: {"type": ["string", "integer"]},
    Holds.ANYTHING: {},
}


def config_schema() -> Schema:
    """The schema of config.yaml."""
    return _file("Config", "brctl configuration", CONFIG, CONFIG_WORDS)


def inventory_schema() -> Schema:
    """The schema of brctl's own inventory files."""
    return _file("Inventory", "brctl inventory", INVENTORY, INVENTORY_WORDS)


def job_schema() -> Schema:
    """The schema of job.yaml."""
    return _file("Job", "training job", JOB, JOB_WORDS)


def _file(kind: str, title: str, table: Table, descriptions: Descriptions) -> Schema:
    found = _table(table, descriptions)
    head = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    found["properties"] = {**head, **found["properties"]}
    found["required"] = [*head, *found["required"]]
    return {"$schema": DRAFT, "title": title, **found}


def _table(table: Table, descriptions: Descriptions, path: str = "") -> Schema:
    return {
        "type": "object",
        "properties": {
            key: {
                **_value(value, descriptions, f"{path}{key}"),
                "description": words_of(descriptions, path + key),
            }
            for key, value in table.rows.items()
        },
        "required": list(table.required),
        "additionalProperties": False,
    }


def _value(value: Value, descriptions: Descriptions, path: str) -> Schema:
    match value:
        case Holds():
            return _PLAIN[value]
        case Table():
            return _table(value, descriptions, f"{path}.")
        case Each():
            inner = _value(value.value, descriptions, path)
            named = {"anyOf": [inner, {"type": "null"}]} if value.bare else inner
            return {"type": "object", "additionalProperties": named}
        case Many():
            return {"type": "array", "items": _value(value.value, descriptions, path)}
        case OneOf():
            return {"anyOf": [_value(kind, descriptions, path) for kind in value.kinds]}
        case _:
            return {"enum": list(value)}
