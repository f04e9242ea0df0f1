"""The schemas of config.yaml and inventory files refuse no file that their readers take."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brctl.inventory.own_yaml import load_own_yaml
from brctl.library.config import load_settings
from brctl.library.file_schema import config_schema, inventory_schema, job_schema
from brctl.library.file_tables import (
    CONFIG,
    INVENTORY,
    JOB,
    Each,
    Holds,
    Many,
    OneOf,
    Table,
    Value,
)
from brctl.library.jobs import load_job
from brctl.library.strict_yaml import parse_document
from brctl.model.errors import ConfigError

jsonschema: Any = pytest.importorskip("jsonschema")

CONFIG_TEXT = """\
apiVersion: brctl.dev/v1
kind: Config
context: prod
contexts:
  prod:
    inventory: [{file: own.yaml}, {k8s: {context: prod}}]
    jobs: [job.yaml]
    scheduler: slurm
    kubernetes: {context: prod, namespace: train}
    readonly: false
ssh: {user: root, fanout: 64, connect_timeout: 5s, transport: auto, gateways: tree, sudo: sudo -n}
state_dir: state
sweep: {profile: sweep, interval: 5m, max_unknown: 2%, reminder: 1d}
notify:
  pagerduty: {routing_key_file: key, when: [verdict.high]}
  slack: {webhook_file: hook, channel: oncall}
  alertmanager: {url: "https://am.example.com"}
  webhook: {url: "https://hook.example.com", key_file: key}
  hooks: {dir: hooks.d}
  deadline: 10s
  runbook: https://wiki.example.com
ticket: {command: [/usr/bin/desk], key_file: key}
calendars:
  hw-daytime: {timezone: Europe/Berlin, ranges: ["mon-fri 09:00-17:00"]}
  change-freeze: {file: freeze.ics}
"""
INVENTORY_TEXT = """\
apiVersion: brctl.dev/v1
kind: Inventory
defaults: {user: root, gpus: 8, gpu_model: H100, rack: {every: 32, format: "r%02d"}, port: 22}
nodes:
  gpu[1-4]: {role: standby, rack: 7, labels: {owner: hw}, python: /usr/bin/python3}
  n5:
  n6: {address: 10.0.0.6, via: gpu1, leaf: L07}
groups: {golden: "gpu[1-2]", leaf: {file: leaf.csv, key: node, value: leaf}}
"""
JOB_TEXT = """\
apiVersion: brctl.dev/v1
kind: Job
name: demo
nodes: [n1, n2]
ranks_per_node: 4
parallel: {order: [tp, dp], tp: 4, dp: 2}
launch: [python, train.py]
workdir: /work
environment: {OMP_NUM_THREADS: 1}
warm: [torch]
checkpoint: {directory: /ckpt, layout: torch-dcp}
logs: /logs
progress: /progress
stall_after: 20s
master_port: 29511
slurm: {partition: train, exclusive: true}
code: {releases: /code, start: r1}
"""
Read = Callable[[Path], object]


def read_config(path: Path) -> object:
    return load_settings({"HOME": str(path.parent)}, None, path)


FILES: list[tuple[str, Table, dict[str, Any], Read]] = [
    (CONFIG_TEXT, CONFIG, config_schema(), read_config),
    (INVENTORY_TEXT, INVENTORY, inventory_schema(), load_own_yaml),
    (JOB_TEXT, JOB, job_schema(), load_job),
]
ODD: list[object] = ["text", 3, 2.5, True, None, ["text"], [3], {"a": 1}]


def reads(read: Read, folder: Path, data: object) -> bool:
    import json

    path = folder / "file.yaml"
    path.write_text(json.dumps(data))
    try:
        read(path)
    except ConfigError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "table", "schema", "read"), FILES, ids=["config", "inventory", "job"]
)
def test_no_value_that_is_read_is_underlined(
    text: str, table: Table, schema: dict[str, Any], read: Read, tmp_path: Path
) -> None:
    """Every value of a full file is replaced by odd ones; what is read fits the schema too."""
    (tmp_path / "leaf.csv").write_text("node,leaf\nn5,L07\n")
    jsonschema.Draft202012Validator.check_schema(schema)
    fits = jsonschema.Draft202012Validator(schema).is_valid
    whole = parse_document(text.encode(), "file.yaml").data
    assert fits(whole)
    assert reads(read, tmp_path, whole)
    refused = 0
    for changed in variants(whole):
        accepted = reads(read, tmp_path, changed)
        assert not accepted or fits(changed), changed
        refused += not fits(changed)
    assert refused > 100


def variants(data: Any) -> Iterator[Any]:
    """The document with one value replaced, once for every value and every odd one."""
    for key in list(data) if isinstance(data, dict) else range(len(data)):
        kept = data[key]
        for odd in ODD:
            yield with_value(data, key, odd)
        if isinstance(kept, dict | list):
            for inner in variants(kept):
                yield with_value(data, key, inner)


def with_value(data: Any, key: Any, value: object) -> Any:
    copy = dict(data) if isinstance(data, dict) else list(data)
    copy[key] = value
    return copy


def test_every_key_of_the_tables_stands_in_the_schema() -> None:
    """So that nothing is lost between a table and its schema."""
    for _, table, schema, _ in FILES:
        known = set(keys_of(schema))
        assert set(keys_in(table)) <= known


def keys_in(value: Value) -> Iterator[str]:
    match value:
        case Table():
            for key, inner in value.rows.items():
                yield key
                yield from keys_in(inner)
        case Each() | Many():
            yield from keys_in(value.value)
        case OneOf():
            for kind in value.kinds:
                yield from keys_in(kind)
        case Holds() | tuple():
            return


def keys_of(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
        for inner in schema.values():
            yield from keys_of(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from keys_of(inner)
