"""Hostile inputs from a seed: sound samples, poisoned in their leaves, cut and mangled."""

import json
import random
from collections.abc import Callable, Sequence

POISON: Sequence[str] = (
    "1" + "0" * 400, "9" * 5000, "-" + "9" * 30, "1e308", "-1e308", "1e999", "NaN", "Infinity",
    "true", "false", "null", "-1", "0", "18446744073709551616", "9223372036854775808",
    '""', '"' + "A" * 20_000 + '"', '"\\u202e\\u001b[31m"', '"\\ud800"', '"../../etc/passwd"',
    '"/evil"', '"rank:99999999999999999999"', "[" * 100_000, "[" * 900 + "]" * 900,
    '{"a":' * 500 + "1" + "}" * 500, "[[[]]]", '{"": {}}',
    '"0001-01-01T00:00:00+14:00 x"', '"9999-12-31T23:59:59-14:00 x"',
    '"NVRM: Xid (PCI): 999999999"',
    '"6,1,999999999999999999,-;NVRM: Xid (PCI:0000:00:00): 79, lost"',
)  # fmt: skip
"""Leaves as text, because some of them are no value that Python would write."""

_HOLE = "\x00hole\x00"


def hostile(sample: object, random_: random.Random) -> bytes:
    """One input made of a sound one: poison in some leaves, then perhaps broken as bytes."""
    poisons: list[str] = []
    value = _poisoned(sample, random_, poisons)
    text = json.dumps(value)
    for poison in poisons:
        text = text.replace(json.dumps(_HOLE), poison, 1)
    raw = text.encode("utf-8", "surrogatepass")
    return mangled(raw, random_) if random_.random() < 0.3 else raw


def _poisoned(value: object, random_: random.Random, poisons: list[str]) -> object:
    if random_.random() < 0.08:
        poisons.append(random_.choice(POISON))
        return _HOLE
    if isinstance(value, dict):
        return {key: _poisoned(inner, random_, poisons) for key, inner in value.items()}
    if isinstance(value, list):
        return [_poisoned(inner, random_, poisons) for inner in value]
    return value


def mangled(raw: bytes, random_: random.Random) -> bytes:
    """The bytes with one thing wrong."""
    data = bytearray(raw)
    change: Callable[[bytearray, random.Random], None] = random_.choice(_CHANGES)
    if data:
        change(data, random_)
    return bytes(data)


def _cut(data: bytearray, random_: random.Random) -> None:
    del data[random_.randrange(len(data)) :]


def _flip(data: bytearray, random_: random.Random) -> None:
    for _ in range(random_.randint(1, 8)):
        data[random_.randrange(len(data))] = random_.randrange(256)


def _repeat(data: bytearray, random_: random.Random) -> None:
    at = random_.randrange(len(data))
    data[at:at] = data[at : at + random_.randint(1, 200)] * random_.randint(1, 50)


def _digits(data: bytearray, random_: random.Random) -> None:
    at = random_.randrange(len(data))
    data[at:at] = b"9" * random_.choice((20, 400, 5000))


_CHANGES = (_cut, _flip, _repeat, _digits)
