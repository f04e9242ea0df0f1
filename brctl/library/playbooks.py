"""Find and read playbooks: the schema of a file, with every mistake named by file and line."""

import hashlib
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeVar

from brctl.library.guards import guards_in, read_policy
from brctl.library.schema import Mistakes, Section, open_kind
from brctl.library.shipped import shipped_dir
from brctl.library.strict_yaml import SIZE_LIMIT_BYTES, Document, parse_document
from brctl.library.trusted_files import NOT_REGULAR, read_beginning, read_whole, refuse_untrusted
from brctl.model.errors import ConfigError, UsageError, did_you_mean
from brctl.model.fault import FaultClass
from brctl.model.runs.playbook import (
    ApprovalSpec,
    ForEach,
    GuardSpec,
    Hook,
    InputSpec,
    InputType,
    Json,
    OnExpire,
    OnFailure,
    Playbook,
    Retry,
    Risk,
    Safety,
    Step,
)
from brctl.model.units import parse_duration_s
from brctl.model.verdict import Confidence
from brctl.playbook.plan import NODES, read_input
from brctl.playbook.templates import OPENING
from brctl.playbook.validate import find_mistakes

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

TOP_KEYS = ("metadata", "match", "inputs", "guards", "approval", "defaults", "for_each", "steps",
            "on_failure", "always")  # fmt: skip
STEP_KEYS = ("id", "name", "uses", "with", "run", "env", "where", "when", "skip_if", "after",
             "joined_before", "safety", "undo", "verify", "timeout", "retry", "on_failure",
             "expect", "idempotency_key")  # fmt: skip
ID_PATTERN = "[a-z][a-z0-9_-]{0,31}"
_ID = re.compile(ID_PATTERN)
VARIABLE_PATTERN = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = re.compile(VARIABLE_PATTERN)
_PERCENT = re.compile(r"(\d{1,3}) ?%")
INPUT_SOURCES = ("verdict.suspects", "verdict.job", "verdict.title", "nodes.job")
RETRY_CLASSES = frozenset({"transport", "timeout", "scheduler", "any"})
AFTER = ("success", "failure", "always")


def load_playbook(path: Path) -> Playbook:
    """Read one playbook and refuse it with all its mistakes.

    Raises:
        ConfigError: One line per mistake, `file:line: problem`.
    """
    raw = read_whole(path, SIZE_LIMIT_BYTES)
    return read_playbook(raw, str(path), shipped=_is_shipped(path))


def load_trusted_playbook(path: Path) -> Playbook:
    """A playbook that may be obeyed: a shipped one, or one that nobody else may write.

    Raises:
        ConfigError: It is invalid, or others may write it.
    """
    if not _is_shipped(path):
        refuse_untrusted(path)
    return load_playbook(path)


def _is_shipped(path: Path) -> bool:
    return path.resolve().is_relative_to(shipped_dir("playbooks"))


def load_playbooks(dirs: Iterable[Path]) -> dict[str, Playbook]:
    """Playbooks of `*.yaml` in these folders by name; a later folder replaces an earlier name."""
    playbooks = map(load_trusted_playbook, playbook_files(dirs))
    return {playbook.name: playbook for playbook in playbooks}


def pick_playbook(dirs: Iterable[Path], name: str) -> Playbook:
    """The playbook of a name in these folders; an unknown one names the nearest.

    A file that cannot be read stops nobody who asks for another playbook, and is said on stderr.

    Raises:
        ConfigError: A file that is or may be this playbook is invalid, or others may write it.
    """
    found: dict[str, Playbook] = {}
    for path in playbook_files(dirs):
        try:
            playbook = load_trusted_playbook(path)
        except ConfigError as exc:
            if _may_be(path, name):
                raise
            logging.getLogger(__name__).warning("left out: %s", str(exc).partition("\n")[0])
            continue
        found[playbook.name] = playbook
    if name not in found:
        raise UsageError(f"no playbook {name!r}; {did_you_mean(name, found)}")
    return found[name]


def playbook_files(dirs: Iterable[Path]) -> Iterator[Path]:
    """The files of playbooks in these folders, in the order in which one replaces another."""
    for folder in dirs:
        yield from sorted(folder.glob("*.yaml"))


def _may_be(path: Path, name: str) -> bool:
    """Whether a broken file may be the playbook of a name: by its own name, or by what it says."""
    said = re.compile(rb"\bname:[ '\"]*" + re.escape(name.encode()) + rb"\b")
    try:
        return path.stem == name or said.search(read_beginning(path, SIZE_LIMIT_BYTES)) is not None
    except OSError as exc:
        return exc.strerror != NOT_REGULAR


def read_playbook(raw: bytes, path: str, *, shipped: bool = False) -> Playbook:
    """The playbook in these bytes; `path` names them in errors, `shipped` as in strict_yaml."""
    document = parse_document(raw, path, shipped=shipped)
    playbook = _Reader(document, raw).read()
    mistakes = list(find_mistakes(playbook))
    if mistakes:
        lines = [str(document.error(m.problem, *m.location)) for m in mistakes]
        raise ConfigError("\n".join(lines))
    return playbook


@dataclass(frozen=True, slots=True)
class _Script:
    """The part of a step that runs a script."""

    run: str = ""
    env: Mapping[str, Json] = field(default_factory=dict)
    where: str = "controller"
    expect_exit: tuple[int, ...] = (0,)


class _Reader:
    """Reads one document; the order of the methods is the order of the schema."""

    def __init__(self, document: Document, raw: bytes) -> None:
        self._document = document
        self._raw = raw
        self._mistakes = Mistakes()
        self._top = Section(document, document.data)
        self._mistakes.take(lambda: open_kind(document, "Playbook", TOP_KEYS), self._top)
        self._defaults = self._section("defaults", ("timeout", "retry", "on_failure"))

    def read(self) -> Playbook:
        about = self._section("metadata", ("name", "title", "owner", "risk", "runbook", "tags"))
        match = self._section("match", ("classes", "min_confidence"))
        none: list[Section] = []
        steps = self._mistakes.take(self._steps, none)
        playbook = Playbook(
            name=self._mistakes.take(lambda: _word(about, "name"), ""),
            title=self._mistakes.take(lambda: about.value("title", str), ""),
            owner=self._mistakes.take(lambda: about.value("owner", str, ""), ""),
            risk=self._mistakes.take(lambda: _enum(about, "risk", Risk, Risk.MEDIUM), Risk.MEDIUM),
            runbook=self._mistakes.take(lambda: about.value("runbook", str, ""), ""),
            tags=self._mistakes.take(lambda: about.texts("tags", ()), ()),
            classes=self._mistakes.take(lambda: self._classes(match), ()),
            min_confidence=self._mistakes.take(
                lambda: _enum(match, "min_confidence", Confidence, Confidence.HIGH),
                Confidence.HIGH,
            ),
            inputs=self._mistakes.take(self._inputs, {}),
            guards=self._mistakes.take(self._guards, ()),
            approval=self._mistakes.take(self._approval, None),
            for_each=self._mistakes.take(self._for_each, None),
            steps=self._each(steps, self._step),
            on_failure=self._mistakes.take(lambda: self._hooks("on_failure"), ()),
            always=self._mistakes.take(lambda: self._hooks("always"), ()),
            text=self._raw,
            sha256=hashlib.sha256(self._raw).hexdigest(),
            path=self._document.path,
        )
        self._mistakes.refuse()
        return playbook

    def _steps(self) -> list[Section]:
        steps = self._top.sections("steps")
        if not steps:
            raise self._top.error("`steps` is empty", "steps")
        return steps

    def _section(self, key: str, known: Collection[str]) -> Section:
        """A part with these keys alone; one that is no mapping reads as empty."""
        empty = Section(self._document, {}, (key,))
        section = self._mistakes.take(lambda: self._top.section(key), empty)
        self._mistakes.allow(section, known)
        return section

    def _each(self, sections: Iterable[Section], read: Callable[[Section], T]) -> tuple[T, ...]:
        """Read them all: one wrong part hides the mistakes of no other."""
        found = [self._mistakes.take(partial(read, section), None) for section in sections]
        return tuple(each for each in found if each is not None)

    def _guards(self) -> tuple[GuardSpec, ...]:
        rows = self._top.sections("guards") if "guards" in self._top.data else []
        return tuple(spec for specs in self._each(rows, guards_in) for spec in specs)

    def _classes(self, match: Section) -> tuple[str, ...]:
        known = [str(fault) for fault in FaultClass]
        patterns = match.texts("classes", ())
        for index, pattern in enumerate(patterns):
            stem = pattern.removesuffix("*")
            if pattern not in known and not (
                pattern.endswith("*") and any(name.startswith(stem) for name in known)
            ):
                problem = f"no fault class {pattern!r}; {did_you_mean(pattern, known)}"
                raise match.error(problem, "classes", index)
        return patterns

    def _inputs(self) -> dict[str, InputSpec]:
        inputs = self._top.section("inputs")
        read = self._each([inputs.section(name) for name in inputs.data], self._input)
        return {spec.name: spec for spec in read}

    def _input(self, section: Section) -> InputSpec:
        section.allow(("type", "from", "required", "default", "values", "min", "max", "help"))
        kind = _enum(section, "type", InputType)
        spec = InputSpec(
            name=str(section.at[-1]),
            type=kind,
            required=section.value("required", bool, default=False),
            default=_default(section, kind),
            source=section.value("from", str, ""),
            minimum=section.optional("min", float),
            maximum=section.optional("max", float),
            values=tuple(section.value("values", list, [])),
            help=section.value("help", str, ""),
        )
        if kind is InputType.ENUM and not spec.values:
            raise section.error("an enum needs `values`", "type")
        if spec.source and spec.source not in INPUT_SOURCES:
            raise section.error(f"`from` is {' or '.join(INPUT_SOURCES)}", "from")
        if isinstance(spec.default, str) and kind is InputType.NODESET:
            # A selector such as @cordoned means nodes only where there is an inventory.
            return spec
        if spec.default not in (None, "", []):
            section.read("default", lambda: read_input(spec, spec.default))
        return spec

    def _approval(self) -> ApprovalSpec | None:
        if "approval" not in self._top.data:
            return None
        section = self._top.section("approval")
        section.allow(("gate_before", "policy", "expires", "on_expire"))
        return ApprovalSpec(
            gate_before=section.value("gate_before", str),
            policy=self._each(section.sections("policy"), read_policy),
            expires_s=section.duration_s("expires", "15m"),
            on_expire=_enum(section, "on_expire", OnExpire, OnExpire.STOP_SAFE),
        )

    def _for_each(self) -> ForEach | None:
        if "for_each" not in self._top.data:
            return None
        section = self._top.section("for_each")
        section.allow(("node", "batch", "canary", "max_failed"))
        canary = section.value("canary", int, 0)
        if canary < 0:
            raise section.error(f"'canary' must be at least 0, not {canary}", "canary")
        count, ratio = _max_failed(section)
        return ForEach(_nodes_of(section), _batch(section), canary, count, ratio)

    def _step(self, section: Section) -> Step:
        section.allow(STEP_KEYS)
        script = self._script(section)
        safety = _enum(section, "safety", Safety)
        return Step(
            id=_word(section, "id", _ID),
            name=section.value("name", str, section.value("id", str)),
            uses="" if script.run else section.value("uses", str),
            arguments=section.section("with").data,
            run=script.run,
            env=script.env,
            where=script.where,
            expect_exit=script.expect_exit,
            idempotency_key=section.value("idempotency_key", str, ""),
            when=section.value("when", str, ""),
            skip_if=section.value("skip_if", str, ""),
            after=section.choice("after", AFTER, "success"),
            joined_before=section.value("joined_before", str, ""),
            safety=safety,
            undo=self._undo(section),
            verify=self._hook(section.section("verify")) if "verify" in section.data else None,
            timeout_s=self._timeout_s(section),
            retry=self._retry(section, safety),
            on_failure=self._failure(section),
            origin=section.origin(),
        )

    def _script(self, section: Section) -> _Script:
        """The keys of a script; a verb has none of them."""
        if "run" not in section.data:
            for key in ("env", "where", "expect"):
                if key in section.data:
                    raise section.error(f"{key!r} needs `run`", key)
            return _Script()
        if "uses" in section.data:
            raise section.error("a step has `uses` or `run`, not both", "run")
        expect = section.section("expect")
        expect.allow(("exit",))
        return _Script(
            run=section.value("run", str),
            env=_environment(section.section("env")),
            where=section.choice("where", ("controller", NODES), "controller"),
            expect_exit=_statuses(expect),
        )

    def _undo(self, section: Section) -> Hook | str | None:
        value = section.data.get("undo")
        if value is None or value == "auto":
            return value
        if isinstance(value, str):
            raise section.error("`undo` is `auto` or a verb with arguments", "undo")
        return self._hook(section.section("undo"))

    def _hook(self, section: Section) -> Hook:
        section.allow(("uses", "with"))
        return Hook(section.value("uses", str), section.section("with").data, section.origin())

    def _hooks(self, key: str) -> tuple[Hook, ...]:
        if key not in self._top.data:
            return ()
        return self._each(self._top.sections(key), self._hook)

    def _timeout_s(self, section: Section) -> float:
        source = section if "timeout" in section.data else self._defaults
        timeout_s = source.duration_s("timeout", "2m")
        if timeout_s <= 0:
            raise source.error("'timeout' must be longer than nothing", "timeout")
        return timeout_s

    def _failure(self, section: Section) -> OnFailure:
        source = section if "on_failure" in section.data else self._defaults
        chosen = _enum(source, "on_failure", OnFailure, OnFailure.ROLLBACK)
        if chosen is OnFailure.NEXT_NODE and "for_each" not in self._top.data:
            raise source.error("`next_node` needs `for_each`", "on_failure")
        return chosen

    def _retry(self, section: Section, safety: Safety) -> Retry:
        if "retry" in section.data:
            return _read_retry(section.section("retry"))
        # A destructive act is never repeated unless its own step says so.
        if safety is Safety.DESTRUCTIVE or "retry" not in self._defaults.data:
            return Retry()
        return _read_retry(self._defaults.section("retry"))


def _environment(section: Section) -> dict[str, Json]:
    """Names and values for a script; a value that is no text keeps its own spelling."""
    for name, value in section.data.items():
        if not _VARIABLE.fullmatch(name):
            raise section.error(f"{name!r} is no name of a variable", name)
        if not isinstance(value, str | int | float):
            raise section.error(f"{name!r} must be text or a number", name)
    return dict(section.data)


def _statuses(section: Section) -> tuple[int, ...]:
    values = section.value("exit", list, [0])
    for value in values:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 255:
            raise section.error(f"'exit' lists statuses from 0 to 255, not {value!r}", "exit")
    return tuple(values)


def _nodes_of(section: Section) -> Json:
    value: Json = section.data.get("node")
    if not isinstance(value, str | list):
        raise section.error("`node` names the nodes, such as $(inputs.nodes)", "node")
    return value


def _batch(section: Section) -> Json:
    """A number of nodes, or an expression that gives one."""
    value: Json = section.data.get("batch", 1)
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    if is_number or (isinstance(value, str) and OPENING in value):
        return value
    raise section.error(f"'batch' is a number of nodes of at least 1, not {value!r}", "batch")


def _max_failed(section: Section) -> tuple[int | None, float | None]:
    """How many nodes may fail, or which part of them."""
    value = section.data.get("max_failed")
    if value is None:
        return None, None
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value, None
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match[1]) > 100:
        raise section.error(f"'max_failed' is a count or 0% to 100%, not {value!r}", "max_failed")
    return None, int(match[1]) / 100


def _read_retry(section: Section) -> Retry:
    section.allow(("times", "backoff", "factor", "only"))
    only = section.texts("only", ("transport", "timeout"))
    for index, name in enumerate(only):
        if name not in RETRY_CLASSES:
            problem = f"no error class {name!r}; {did_you_mean(name, RETRY_CLASSES)}"
            raise section.error(problem, "only", index)
    times = section.value("times", int, 0)
    if not 0 <= times <= 10:
        raise section.error(f"'times' must be between 0 and 10, not {times}", "times")
    return Retry(
        times=times,
        backoff_s=section.duration_s("backoff", "5s"),
        factor=section.value("factor", float, 2.0),
        only=frozenset(only),
    )


def _default(section: Section, kind: InputType) -> Json:
    value: Json = section.data.get("default")
    if kind is InputType.DURATION and value is not None:
        text = section.value("default", str)
        return section.read("default", lambda: parse_duration_s(text))
    return value


def _word(section: Section, key: str, pattern: re.Pattern[str] = _ID) -> str:
    value = section.value(key, str)
    if not pattern.fullmatch(value):
        raise section.error(f"{key!r}: {value!r} has other than a-z, 0-9, dash, underscore", key)
    return value


def _enum(section: Section, key: str, kind: type[E], default: E | None = None) -> E:
    known = [str(member) for member in kind]
    return kind(section.choice(key, known, default))
