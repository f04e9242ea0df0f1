"""Take secrets out of what is kept or sent: environment dumps, command lines and logs hold them.

One redaction for evidence, notices, logs and exports. What is packed (JSON in a text, base64, URL
encoding) is unpacked, looked through and packed again, so that a document stays one.
"""

import base64
import binascii
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import quote, unquote

from brctl.view.redact_rules import (
    BASE64,
    LONG_WORD,
    RANDOM_WORD,
    RULES,
    SECRET_NAME,
    URL_ENCODED,
    SecretShape,
    is_random,
    may_hold_secret,
)

HIDDEN = "[redacted]"
LIMIT = 16 << 20
"""Characters that are looked through; what follows is not kept at all."""

DEPTH = 3
"""A text in base64 in base64; each level is shorter, so that all of them take linear time."""

PACKED_WORDS = 20_000
"""Packed words of one text that are looked through rule by rule; what follows is not kept."""

REMEMBERED, REMEMBERED_LENGTH = 50_000, 200
"""Short texts without a secret: keys and values of a document come again for every node."""

_LINE = re.compile(r"[^\r\n]+")
_BREAKS = str.maketrans("", "", "\n\r\t")


@dataclass(frozen=True, slots=True)
class Redactor:
    """What is taken out of texts, and a count of it.

    Attributes:
        values: Secrets that are known: each is taken out wherever it stands.
        rename: Applied to what is left, at every level; gives names their pseudonyms.
        taken: How often each rule took something out.
    """

    values: tuple[str, ...] = ()
    rename: Callable[[str], str] | None = None
    taken: Counter[str] = field(default_factory=Counter)
    _harmless: set[str] = field(default_factory=set)
    _packed: list[int] = field(default_factory=lambda: [0])

    def text(self, text: str) -> str:
        """The text without the secrets that can be recognised."""
        if text in self._harmless:
            return text
        self._packed[0] = 0
        clean = self._whole(text)
        if clean == text and len(text) < REMEMBERED_LENGTH and len(self._harmless) < REMEMBERED:
            self._harmless.add(text)
        return clean

    def _whole(self, text: str) -> str:
        more = len(text) - LIMIT
        text = self._unpacked(text[:LIMIT], 0)
        return f"{text}\n[{more} characters more were not kept]" if more > 0 else text

    def document(self, value: object) -> object:
        """A document without secrets: in its texts, and below keys that name one."""
        if isinstance(value, str):
            return self._in_document(value)
        if isinstance(value, (list, tuple)):
            return self._list(value)
        if not isinstance(value, dict):
            return value
        named = any(names_secret(value.get(key)) for key in ("name", "key", "Name", "Key"))
        return {
            self._key(key): self._secret(item)
            if _hides(key, item, named=named)
            else self.document(item)
            for key, item in value.items()
        }

    def _list(self, items: Sequence[object]) -> list[object]:
        """A command line, maybe: what follows an option that names a secret is one."""
        options = (None, *items)
        return [
            self._hidden() if _is_value_of(option, item) else self.document(item)
            for option, item in zip(options, items, strict=False)
        ]

    def _secret(self, value: object) -> object:
        """A secret, or a list of them that stays a list."""
        if isinstance(value, (list, tuple)):
            return [self._secret(item) for item in value]
        return self.document(value) if _holds_none(value) else self._hidden()

    def file(self, name: str, raw: bytes) -> bytes:
        """A file's text, as what its name says it is, so that it still is one afterwards."""
        text = raw.decode("utf-8", "replace")
        if name.endswith(".json"):
            return self._whole_json(text).encode()
        if name.endswith(".ndjson"):
            return "\n".join(map(self._in_document, text.split("\n"))).encode()
        return self.text(text).encode()

    def _whole_json(self, text: str) -> str:
        try:
            return self._line_of_json(text)
        except (ValueError, RecursionError):
            return self.text(text)

    def _key(self, key: object) -> str:
        return self.text(key) if isinstance(key, str) else str(key)

    def _in_document(self, text: str) -> str:
        """A text that is a document itself is taken apart, so that it still is one afterwards."""
        if not text.startswith(("{", "[")) or len(text) > LIMIT:
            return self.text(text)
        try:
            return "\n".join(self._line_of_json(line) for line in text.split("\n"))
        except (ValueError, RecursionError):
            return self.text(text)

    def _line_of_json(self, line: str) -> str:
        if not line.strip():
            return line
        value = json.loads(line, object_pairs_hook=_each_key_once)
        clean = self.document(value)
        return line if clean == value else json.dumps(clean)

    def _hidden(self) -> str:
        self.taken["named"] += 1
        return HIDDEN

    def _level(self, text: str, depth: int) -> str:
        if depth < DEPTH:
            text = URL_ENCODED.sub(lambda match: self._url_encoded(match[0], depth), text)
            text = BASE64.sub(lambda match: self._base64(match[0], depth), text)
        for value in self.values:
            text = self._replaced("known", text, value)
        small = text.lower()
        for rule in RULES:
            if rule.may_stand_in(small):
                text = rule.replace(partial(self._take, rule), text)
        text = RANDOM_WORD.sub(self._random, text)
        return self.rename(text) if self.rename is not None else text

    def _replaced(self, name: str, text: str, value: str) -> str:
        self.taken[name] += text.count(value)
        return text.replace(value, HIDDEN)

    def _take(self, rule: SecretShape, match: re.Match[str]) -> str:
        before = match[1] if match.re.groups else ""
        found = f"{before}{HIDDEN}"
        self.taken[rule.name] += match[0] != found
        return found

    def _random(self, match: re.Match[str]) -> str:
        if not is_random(match[0]):
            return match[0]
        self.taken["random word"] += 1
        return HIDDEN

    def _url_encoded(self, packed: str, depth: int) -> str:
        plain = unquote(packed)
        clean = self._word(plain, depth + 1)
        return packed if clean == plain else quote(clean, safe="[]")

    def _word(self, plain: str, depth: int) -> str:
        """What was packed in a word; a text may be made of more of them than there is time for."""
        if len(plain) >= LONG_WORD:
            self._packed[0] += 1
        if self._packed[0] > PACKED_WORDS:
            self.taken["packed word"] += 1
            return HIDDEN
        return self._unpacked(plain, depth)

    def _unpacked(self, plain: str, depth: int) -> str:
        """A text may be millions of short packed words: few can hold a secret."""
        if may_hold_secret(plain) or any(value in plain for value in self.values):
            return self._level(plain, depth)
        return self.rename(plain) if self.rename is not None else plain

    def _base64(self, packed: str, depth: int) -> str:
        plain = _decoded(packed)
        if plain is None:
            whole = "\n" not in packed
            return packed if whole else _LINE.sub(lambda line: self._base64(line[0], depth), packed)
        clean = self._word(plain, depth + 1)
        return packed if clean == plain else base64.b64encode(clean.encode()).decode()


def redact(text: str) -> str:
    """The text without the secrets that can be recognised.

    Examples:
        >>> redact("WANDB_API_KEY=abc123 RANK=3")
        'WANDB_API_KEY=[redacted] RANK=3'
    """
    return Redactor().text(text)


def redact_document(value: object) -> object:
    """A document without secrets: in its texts, and below keys that name one.

    Examples:
        >>> redact_document({"env": [{"name": "DB_PASSWORD", "value": "x"}]})
        {'env': [{'name': 'DB_PASSWORD', 'value': '[redacted]'}]}
    """
    return Redactor().document(value)


def _hides(key: object, item: object, *, named: bool) -> bool:
    if _holds_none(item):
        return False
    return names_secret(key) or (named and str(key).lower() == "value")


def _holds_none(item: object) -> bool:
    """Whether this itself is no secret, whatever it is called."""
    return isinstance(item, (dict, bool)) or item in (None, "")


def _is_value_of(option: object, item: object) -> bool:
    """`--db-password` and what it is set to, as two elements of a command line."""
    if not (isinstance(option, str) and isinstance(item, str)) or item.startswith("--"):
        return False
    return bool(item) and option.startswith("--") and "=" not in option and names_secret(option)


def _each_key_once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object as a dictionary, which would drop all but the last value of a key unseen."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def names_secret(name: object) -> bool:
    """Whether people call a secret so."""
    return isinstance(name, str) and bool(SECRET_NAME.search(name[:300]))


def unpacked_words(text: str) -> Iterator[str]:
    """The texts inside what is base64 in a text."""
    for match in BASE64.finditer(text):
        if (plain := _decoded(match[0])) is not None:
            yield plain


def _decoded(packed: str) -> str | None:
    """The text inside base64 of either alphabet; None where there is none."""
    word = packed.translate(_BREAKS).rstrip("=").replace("-", "+").replace("_", "/")
    try:
        plain = binascii.a2b_base64(word + "=" * (-len(word) % 4)).decode()
    except ValueError:
        return None
    return plain if plain.translate(_BREAKS).isprintable() else None
