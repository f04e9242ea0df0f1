"""Pseudonyms for what names a site: the same name is the same pseudonym in everything it leaves.

A pseudonym never looks like something that would be renamed, so that a text may be renamed twice:
packed words are renamed where they are unpacked, and again with the text around them.
"""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from brctl.model.command import Outcome
from brctl.model.evidence import Role, Weight
from brctl.model.fault import Action, FaultClass, Origin
from brctl.model.inventory import NodeRole
from brctl.model.jobs.job_look import JobState
from brctl.model.sweeps.report import ProbeStatus
from brctl.view.recorded.addresses import (
    KEPT_NETWORKS,
    LAST_NETWORK,
    keyed_mac,
    keyed_uuid,
    keyed_v4,
    keyed_v6,
    names_nobody,
)


class NameKind(StrEnum):
    """What a name names."""

    NODE = "node"
    DOMAIN = "domain"
    JOB = "job"
    USER = "user"
    ADDRESS = "address"
    MAC = "mac"
    DEVICE = "device"


class Profile(StrEnum):
    """For whom a file is: names stay in the house, a vendor needs the ids of devices."""

    HOUSE = "house"
    VENDOR = "vendor"
    PUBLIC = "public"


FORMS: Mapping[NameKind, str] = {
    NameKind.NODE: "node-x{:04}", NameKind.DOMAIN: "site-x{:03}", NameKind.JOB: "job-x{:03}",
    NameKind.USER: "user-x{:03}",
}  # fmt: skip
"""Numbered in the order in which names are learned: neighbours in an inventory stay neighbours."""

SHARED_USERS = frozenset({"root", "ubuntu", "runner", "nobody", "slurm", "shared", "admin"})
_ENUMERATIONS = (
    Action, FaultClass, JobState, NodeRole, Origin, Outcome, ProbeStatus, Role, Weight,
)  # fmt: skip
KEPT_WORDS = SHARED_USERS | {word.value for kind in _ENUMERATIONS for word in kind}
"""Words that name nobody: a job called `context` tells no more than the document's own word, and
`root` begins a chain of evidence as well as it logs in. A look without them cannot be read."""

_HEX = "[0-9A-Fa-f]"
_MAC = re.compile(rf"(?<![\w:])(?:{_HEX}{{2}}:){{5}}{_HEX}{{2}}(?![\w:])")
_V6 = re.compile(r"(?<![\w:.])[0-9A-Fa-f:]{4,39}(?![\w:])")
_V6_COLONS, _V6_BEGINS = 4, ("fe80:", "fd", "fc", "2")
"""What is taken for an address; `c10::` and a time of day are none."""
_V4 = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)|(?<=ip-)\d{1,3}(?:-\d{1,3}){3}")
_UUID = re.compile(rf"\b(?:GPU|MIG)-{_HEX}{{8}}(?:-{_HEX}{{4}}){{3}}-{_HEX}{{12}}\b")
_HOME = re.compile(r"(?<![\w.])/(?:home|Users)/([A-Za-z_][\w.-]{0,63})")
_WORD = re.compile(r"[A-Za-z0-9_]+(?:[.-]+[A-Za-z0-9_]+)*")
_MARKS = re.compile(r"([.-]+)")


@dataclass(frozen=True, slots=True)
class Pseudonyms:
    """Names and their pseudonyms, numbered or made with a key.

    Attributes:
        key: Stays at home, as the names do.
        names: Pseudonyms by kind and name; grows.
        used: The names that stood in what was renamed.
    """

    key: bytes = field(repr=False)
    profile: Profile = Profile.VENDOR
    names: dict[NameKind, dict[str, str]] = field(default_factory=dict)
    used: set[tuple[NameKind, str]] = field(default_factory=set)
    _words: dict[str, tuple[NameKind, str]] = field(default_factory=dict)
    _phrases: dict[str, tuple[NameKind, str]] = field(default_factory=dict)
    _longest: list[int] = field(default_factory=lambda: [1])

    def learn(self, kind: NameKind, names: Iterable[str]) -> None:
        """Give names their pseudonyms; none for what has no letter, or is in `KEPT_WORDS`."""
        known, wanted = self.names.setdefault(kind, {}), tuple(names)
        given = set(known.values())
        taken = given | set(wanted)
        for name in wanted:
            if not any(map(str.isalpha, name)) or name in given or name in KEPT_WORDS:
                continue
            if name not in known:
                known[name] = _next_number(FORMS[kind], len(known) + 1, taken)
                taken.add(known[name])
            self._find_as(kind, name)

    def learn_users(self, text: str) -> None:
        """Whoever has a home below /home in a text."""
        self.learn(NameKind.USER, dict.fromkeys(_HOME.findall(text)))

    def rename(self, text: str) -> str:
        """The text with pseudonyms."""
        for phrase in sorted(self._phrases, key=len, reverse=True):
            text = self._without(phrase, text)
        text = _WORD.sub(self._word, text) if self._words else text
        text = _MAC.sub(self._mac, text)
        text = _V6.sub(self._v6, text) if ":" in text else text
        text = _V4.sub(self._v4, text)
        return _UUID.sub(self._device, text) if self.profile is Profile.PUBLIC else text

    @property
    def learned(self) -> frozenset[str]:
        """The names that are replaced wherever they stand, as they are written."""
        return frozenset(self._words) | frozenset(self._phrases)

    def original(self, pseudonym: str) -> tuple[NameKind, str] | None:
        """What a pseudonym stands for; None for one that was never given."""
        found = (
            (kind, name)
            for kind, names in self.names.items()
            for name, given in names.items()
            if given == pseudonym
        )
        return next(found, None)

    def _find_as(self, kind: NameKind, name: str) -> None:
        if not _WORD.fullmatch(name):
            self._phrases[name] = (kind, name)
            return
        self._words[name] = (kind, name)
        if kind is NameKind.NODE:
            for other in (name.lower(), name.upper()):
                self._words.setdefault(other, (kind, name))
        self._longest[0] = max(self._longest[0], len(_MARKS.split(name)))

    def _without(self, phrase: str, text: str) -> str:
        """A person may be called `alice@corp.com`, or have blanks in the name."""
        if phrase not in text:
            return text
        kind, name = self._phrases[phrase]
        self.used.add((kind, name))
        given = self.names[kind][name]
        return re.sub(rf"(?<!\w){re.escape(phrase)}(?!\w)", given, text)

    def _word(self, match: re.Match[str]) -> str:
        """A name stands alone, or beside points and hyphens: `n1.site`, `n1-ib0`."""
        if match[0] in self._words:
            return self._given(match[0])
        parts = _MARKS.split(match[0])
        out, at = "", 0
        while at < len(parts):
            taken = self._longest_at(parts, at)
            out += (
                self._given("".join(parts[at:taken])) if taken else self._between_lines(parts[at])
            )
            at = taken or at + 1
        return out

    def _longest_at(self, parts: list[str], at: int) -> int:
        """The end of the longest name that begins with this part; 0 where none does."""
        ends = range(min(len(parts), at + self._longest[0]), at, -1)
        return next((end for end in ends if "".join(parts[at:end]) in self._words), 0)

    def _between_lines(self, part: str) -> str:
        """Between underscores only names with a digit: `train_loss` is no job called train."""
        if "_" not in part:
            return part
        names = (self._given(word) if word in self._words and any(map(str.isdigit, word)) else word
                 for word in part.split("_"))  # fmt: skip
        return "_".join(names)

    def _given(self, word: str) -> str:
        kind, name = self._words[word]
        self.used.add((kind, name))
        return self.names[kind][name]

    def _made(self, kind: NameKind, name: str, make: Callable[[bytes, str], str]) -> str:
        known = self.names.setdefault(kind, {})
        made = known.get(name) or make(self.key, name)
        if made != name:
            known[name] = made
            self.used.add((kind, name))
        return made

    def _mac(self, match: re.Match[str]) -> str:
        return self._made(NameKind.MAC, match[0].lower(), keyed_mac)

    def _device(self, match: re.Match[str]) -> str:
        return self._made(NameKind.DEVICE, match[0], keyed_uuid)

    def _v4(self, match: re.Match[str]) -> str:
        """Between hyphens too, as the names of cloud machines hold it: ip-10-0-0-7."""
        mark = "-" if "-" in match[0] else "."
        numbers = [int(part) for part in match[0].split(mark)]
        if max(numbers) > LAST_NETWORK or numbers[0] in KEPT_NETWORKS:
            return match[0]
        given = self.names.setdefault(NameKind.ADDRESS, {}).items()
        name = ".".join(map(str, numbers))
        return self._made(NameKind.ADDRESS, name, partial(keyed_v4, given=given)).replace(".", mark)

    def _v6(self, match: re.Match[str]) -> str:
        text = match[0].lower()
        if names_nobody(text):
            return match[0]
        if text.count(":") < _V6_COLONS and not text.startswith(_V6_BEGINS):
            return match[0]
        try:
            whole = ipaddress.IPv6Address(text).exploded
        except ValueError:
            return match[0]
        return self._made(NameKind.ADDRESS, whole, keyed_v6)


def _next_number(form: str, number: int, taken: set[str]) -> str:
    """The next one, past those that are names of the site themselves."""
    while form.format(number) in taken:
        number += 1
    return form.format(number)
