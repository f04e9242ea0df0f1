"""JSON Schemas of playbooks and guards.yaml, built from the tables that `play validate` reads.

A schema sees the shape of a file: keys, words, verbs and their arguments. Names inside
expressions, the order of steps and the place of the gate are for `brctl play validate` alone.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from brctl.library.file_schema import DRAFT, DURATION
from brctl.library.guards import POLICY_KEYS
from brctl.library.playbooks import (
    AFTER,
    ID_PATTERN,
    INPUT_SOURCES,
    RETRY_CLASSES,
    STEP_KEYS,
    TOP_KEYS,
    VARIABLE_PATTERN,
)
from brctl.model import API_VERSION
from brctl.model.fault import FaultClass
from brctl.model.runs.playbook import InputType, Need, OnExpire, OnFailure, Risk, Safety
from brctl.model.verdict import Confidence
from brctl.playbook.guards import GUARDS, Parameter, ValueType
from brctl.playbook.plan import NODES
from brctl.playbook.validate import MUST_UNDO
from brctl.playbook.verbs import SAFETY_ORDER, VERBS, Verb, is_at_least

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TRUTH: Schema = {"type": "boolean"}
_DURATION = DURATION
_EXPRESSION: Schema = {"type": "string", "description": "an expression without $(...)"}
_REFERENCE: Schema = {"type": "string", "pattern": r"\$\("}
_NAMES: Schema = {"anyOf": [_TEXT, {"type": "array", "items": _TEXT}]}
_ID: Schema = {"type": "string", "pattern": f"^{ID_PATTERN}$"}

_PARAMETER_SCHEMAS: Mapping[ValueType, Schema] = {
    ValueType.NUMBER: {"type": "number"},
    ValueType.DURATION: _DURATION,
    ValueType.TEXT: _TEXT,
    ValueType.NAMES: _NAMES,
    ValueType.TRUTH: _TRUTH,
}


def playbook_schema(about_verbs: Mapping[str, str]) -> Schema:
    """The schema of a playbook; `about_verbs` gives each verb its sentence."""
    return {
        "$schema": DRAFT,
        "title": "brctl playbook",
        **_closed(
            {**_kind("Playbook"), **{key: _TOP.get(key, {}) for key in TOP_KEYS}},
            ("apiVersion", "kind", "metadata", "steps"),
        ),
        # What cannot be undone is asked about first.
        "if": {
            "properties": {"steps": {"contains": {"properties": {
                "safety": {"const": Safety.DESTRUCTIVE.value}}, "required": ["safety"]}}},
            "required": ["steps"],
        },
        "then": {"required": ["approval"]},
        "$defs": {
            "step": _step(),
            "hook": {**_closed({"uses": _verb_names(about_verbs), "with": _OBJECT}, ("uses",)),
                     "allOf": [_arguments(name, verb) for name, verb in VERBS.items()]},
            "verb": _verb_names(about_verbs),
        },
    }  # fmt: skip


def guards_schema() -> Schema:
    """The schema of guards.yaml."""
    lines = {
        kind: {"anyOf": [_guard(kind), {"type": "array", "items": _guard(kind)}]} for kind in GUARDS
    }
    override = _closed({"allow_groups": {"type": "array", "items": _TEXT}})
    own = {"approval": {"type": "array", "items": _POLICY}, "override": override}
    whole = _closed({**_kind("Guards"), **lines, **own}, ("apiVersion", "kind"))
    return {"$schema": DRAFT, "title": "brctl guards", **whole}


def _kind(name: str) -> Schema:
    return {"apiVersion": {"const": API_VERSION}, "kind": {"const": name}}


def _closed(properties: Schema, required: Iterable[str] = ()) -> Schema:
    """A mapping that holds these keys and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def _words(kind: type[StrEnum]) -> Schema:
    return {"enum": [str(member) for member in kind]}


_OBJECT: Schema = {"type": "object"}
_HOOK: Schema = {"$ref": "#/$defs/hook"}
_HOOKS: Schema = {"type": "array", "items": _HOOK}
_RETRY: Schema = _closed(
    {
        "times": {"type": "integer", "minimum": 0, "maximum": 10},
        "backoff": _DURATION,
        "factor": {"type": "number"},
        "only": {"type": "array", "items": {"enum": sorted(RETRY_CLASSES)}},
    }
)
_POLICY_VALUES: Schema = {
    "when": _EXPRESSION,
    "need": _words(Need),
    "role": {"type": "string", "description": "unix group of the people who count"},
    "starter_counts": _TRUTH,
}
_POLICY: Schema = _closed({key: _POLICY_VALUES.get(key, {}) for key in POLICY_KEYS}, ("need",))
_INPUT: Schema = {
    **_closed(
        {
            "type": _words(InputType),
            "from": {"enum": list(INPUT_SOURCES)},
            "required": _TRUTH,
            "default": {},
            "values": {"type": "array"},
            "min": {"type": "number"},
            "max": {"type": "number"},
            "help": _TEXT,
        },
        ("type",),
    ),
    "if": {"properties": {"type": {"const": InputType.ENUM.value}}},
    "then": {"required": ["values"]},
}


def _guard(kind: str) -> Schema:
    row = GUARDS[kind]
    values = {key: _parameter(takes) for key, takes in row.parameters.items()}
    return _closed(values, sorted(row.required))


def _parameter(takes: Parameter) -> Schema:
    plain = {"enum": list(takes)} if isinstance(takes, tuple) else _PARAMETER_SCHEMAS[takes]
    return {"anyOf": [plain, _REFERENCE]}


_TOP: Schema = {
    "metadata": _closed(
        {
            "name": _ID,
            "title": _TEXT,
            "owner": _TEXT,
            "risk": _words(Risk),
            "runbook": _TEXT,
            "tags": {"type": "array", "items": _TEXT},
        },
        ("name", "title"),
    ),
    "match": _closed(
        {
            "classes": {
                "type": "array",
                "items": {"anyOf": [_words(FaultClass), {"type": "string", "pattern": r"\*$"}]},
            },
            "min_confidence": _words(Confidence),
        }
    ),
    "inputs": {"type": "object", "additionalProperties": _INPUT},
    "guards": {
        "type": "array",
        "items": _closed({kind: _guard(kind) for kind in GUARDS}),
    },
    "approval": _closed(
        {
            "gate_before": {"type": "string", "description": "id of the first step people decide"},
            "policy": {"type": "array", "items": _POLICY},
            "expires": _DURATION,
            "on_expire": _words(OnExpire),
        },
        ("gate_before", "policy"),
    ),
    "defaults": _closed({"timeout": _DURATION, "retry": _RETRY, "on_failure": _words(OnFailure)}),
    "for_each": _closed(
        {
            "node": {},
            "batch": {"anyOf": [{"type": "integer", "minimum": 1}, _REFERENCE]},
            "canary": {"type": "integer", "minimum": 0},
            "max_failed": {
                "anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": "%$"}]
            },
        },
        ("node",),
    ),
    "steps": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/step"}},
    "on_failure": _HOOKS,
    "always": _HOOKS,
}
"""What each key of a playbook holds."""

_STEP: Schema = {
    "id": _ID,
    "name": _TEXT,
    "uses": {"$ref": "#/$defs/verb"},
    "with": _OBJECT,
    "run": {"type": "string", "description": "never expanded; values come by env"},
    "env": {
        "type": "object",
        "propertyNames": {"pattern": f"^{VARIABLE_PATTERN}$"},
        "additionalProperties": {"type": ["string", "number", "boolean"]},
    },
    "where": {"enum": ["controller", NODES]},
    "when": _EXPRESSION,
    "skip_if": _EXPRESSION,
    "after": {"enum": list(AFTER)},
    "joined_before": {"type": "string", "description": "id of a later step, or `end`"},
    "safety": _words(Safety),
    "undo": {"anyOf": [{"const": "auto"}, _HOOK]},
    "verify": _HOOK,
    "timeout": _DURATION,
    "retry": _RETRY,
    "on_failure": _words(OnFailure),
    "expect": _closed(
        {"exit": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 255}}}, ()
    ),
    "idempotency_key": _TEXT,
}
"""What each key of a step holds."""


def _step() -> Schema:
    either = [{"required": [key]} for key in ("uses", "run")]
    traces = {"properties": {"uses": {"pattern": f"^({'|'.join(MUST_UNDO)})"}}}
    reversible = {
        "properties": {"safety": {"const": Safety.REVERSIBLE.value}},
        "required": ["safety"],
    }
    undo = {"if": {"allOf": [reversible, traces]}, "then": {"required": ["undo"]}}
    script = {key: ["run"] for key in ("env", "where", "expect")}
    rules = [_verb_rules(name, verb) for name, verb in VERBS.items()]
    shape = _closed({key: _STEP[key] for key in STEP_KEYS}, ("id", "safety"))
    return {**shape, "oneOf": either, "dependentRequired": script, "allOf": [undo, *rules]}


def _verb_names(about: Mapping[str, str]) -> Schema:
    return {"oneOf": [{"const": name, "description": about.get(name, "")} for name in VERBS]}


def _verb_rules(name: str, verb: Verb) -> Schema:
    """A step that uses this verb gives its arguments and admits to its danger."""
    allowed = [str(s) for s in SAFETY_ORDER if is_at_least(s, verb.safety)]
    rules = _arguments(name, verb)
    rules["then"]["properties"]["safety"] = {"enum": allowed}
    if not verb.undoable:
        rules["then"]["properties"]["undo"] = {"not": {"const": "auto"}}
    return rules


def _arguments(name: str, verb: Verb) -> Schema:
    known = sorted(verb.required | verb.optional)
    properties = _closed({key: {} for key in known}, sorted(verb.required))
    return {
        "if": {"properties": {"uses": {"const": name}}, "required": ["uses"]},
        "then": {
            "properties": {"with": properties},
            "required": ["with"] if verb.required else [],
        },
    }
