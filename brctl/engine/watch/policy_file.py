"""Read a watcher's policy strictly; one that cannot be read allows nothing but observing."""

import re
from dataclasses import replace
from pathlib import Path

from brctl.library.schema import Section, open_kind
from brctl.library.strict_yaml import load_document
from brctl.library.trusted_files import refuse_untrusted
from brctl.model.errors import ConfigError
from brctl.model.fault import FaultClass
from brctl.model.watch.policy import Breaker, WatchLimits, WatchMode, WatchPolicy
from brctl.watch.rules import RULES

KEYS = ("mode", "rules", "classes", "limits", "freeze")
LIMITS = (
    "breaker", "attempts_a_day", "restarts", "restarts_within", "restart_steps", "spares_kept",
    "quiet", "start_up",
)  # fmt: skip
BREAKER = ("within", "share", "least")
MODES = tuple(mode.value for mode in WatchMode)
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)%")


def load_watch_policy(path: Path) -> WatchPolicy:
    """The policy of a file.

    Raises:
        ConfigError: Others may write it, or it is no valid policy; names file, line and nearest
            word.
    """
    refuse_untrusted(path)
    top = open_kind(load_document(path), "WatchPolicy", KEYS)
    return WatchPolicy(
        mode=WatchMode(top.choice("mode", MODES, "observe")),
        rules=_modes(top.section("rules"), list(RULES)),
        classes={
            FaultClass(name): mode
            for name, mode in _modes(top.section("classes"), [f.value for f in FaultClass]).items()
        },
        limits=_limits(top.section("limits")),
        freezes=top.texts("freeze", ()),
        origin=str(path),
    )


def policy_or_observe(path: Path | None) -> WatchPolicy:
    """The policy of a file; where it cannot be read, one that only observes and says why."""
    if path is None:
        return WatchPolicy()
    try:
        return load_watch_policy(path)
    except ConfigError as exc:
        return WatchPolicy(origin=str(path), problem=str(exc))


def _modes(section: Section, known: list[str]) -> dict[str, WatchMode]:
    section.allow(known)
    return {name: WatchMode(section.choice(name, MODES)) for name in section.data}


def _limits(section: Section) -> WatchLimits:
    section.allow(LIMITS)
    own = WatchLimits()
    breakers = (
        tuple(map(_breaker, section.sections("breaker"))) if "breaker" in section.data else ()
    )
    return replace(
        own,
        breakers=breakers or own.breakers,
        attempts_a_day=_count(section, "attempts_a_day", own.attempts_a_day),
        restarts=_count(section, "restarts", own.restarts),
        restart_steps=_count(section, "restart_steps", own.restart_steps),
        spares_kept=_count(section, "spares_kept", own.spares_kept),
        restarts_within_s=section.duration_s("restarts_within", "30m"),
        quiet_s=section.duration_s("quiet", "24h"),
        start_up_s=section.duration_s("start_up", "10m"),
    )


def _count(section: Section, key: str, default: int) -> int:
    value = section.value(key, int, default)
    if value < 0:
        raise section.error(f"{key!r} must not be below 0", key)
    return value


def _breaker(row: Section) -> Breaker:
    row.allow(BREAKER)
    text = row.value("share", str)
    match = _SHARE.fullmatch(text)
    if match is None or float(match[1]) > 100:
        raise row.error(f"'share': {text!r}: write a percentage of the fleet such as 2%", "share")
    return Breaker(row.duration_s("within"), float(match[1]) / 100, _count(row, "least", 1))
