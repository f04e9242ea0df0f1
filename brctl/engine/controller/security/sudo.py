"""What the login may do as root on nodes, as sudo there says it; these nodes are reached."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from brctl.engine.controller.reach import Chosen, CommandResults, run_on_nodes
from brctl.engine.controller.security.sudoers import root_commands
from brctl.library.config import Settings
from brctl.model.command import Command, CommandResult, Outcome
from brctl.model.errors import BrctlError
from brctl.model.inventory import Node
from brctl.model.nodeset import fold
from brctl.model.security_finding import SecurityFinding
from brctl.model.sweeps.check import Check
from brctl.model.sweeps.sweep import Health

ASK = Command(("sh", "-c", "id -u; LC_ALL=C sudo -n -l 2>&1"), deadline_s=15.0)
"""It changes nothing; sudo logs that it was asked."""

_RULE = re.compile(r"\s{1,8}\((?P<who>[^()]{1,200})\)\s{1,8}(?P<what>.{1,2000})")
_ROOT = "whoever has its key, or its session, is root on these nodes"
_UNSAID = "nobody knows what it may do there"
_COMMAND = "brctl config sudoers   # prints lines that allow the checks and nothing else"


class Answer(NamedTuple):
    """What one node says, so that equal nodes share a line."""

    health: Health
    text: str
    why: str = ""
    command: str = ""


async def sudo_findings(
    settings: Settings, chosen: Chosen, checks: Mapping[str, Check]
) -> tuple[SecurityFinding, ...]:
    """One line for nodes that say the same."""
    gathered = CommandResults(chosen.names)
    try:
        await run_on_nodes(settings, chosen, _ask, gathered)
    except BrctlError as error:
        subject = fold(chosen.names)
        return (SecurityFinding(Health.UNKNOWN, "sudo", subject, str(error), _UNSAID),)
    by_answer: dict[Answer, list[str]] = {}
    needed = {" ".join(command) for command in root_commands(checks)}
    for name in chosen.names:
        found = gathered.answers.get(name)
        by_answer.setdefault(_judge(found, needed), []).append(name)
    return tuple(
        SecurityFinding(a.health, "sudo", fold(names), a.text, a.why, a.command)
        for a, names in by_answer.items()
    )


def _ask(_node: Node) -> Command:
    return ASK


def _judge(answer: CommandResult | None, needed: set[str]) -> Answer:
    if answer is None or answer.outcome is not Outcome.ANSWERED:
        outcome = answer.outcome.value if answer else "no answer"
        return Answer(Health.UNKNOWN, f"could not be asked: {outcome}", _UNSAID)
    uid, _, rest = answer.stdout.decode("utf-8", "replace").partition("\n")
    if uid.strip() == "0":
        return Answer(Health.WARNING, "the login is root", _ROOT, _COMMAND)
    rules = {rule for rule in _rules(rest) if rule}
    if not uid.strip().isdecimal():
        return Answer(Health.UNKNOWN, "gave no user id", _UNSAID)
    # Whoever may use sudo for nothing is asked for a password, or told that he may not.
    if not rules:
        missing = ", ".join(sorted(needed))
        return Answer(Health.OK, f"may run nothing as root; checks that need {missing} are UNKNOWN")
    more = sorted(rules - needed)
    if more:
        listed = "; ".join(more[:5])
        return Answer(Health.WARNING, f"may run as root: {listed}", _ROOT, _COMMAND)
    return Answer(Health.OK, f"may run as root what checks need, no more: {', '.join(rules)}")


def _rules(text: str) -> Iterator[str]:
    """Commands of `sudo -l`, without tags; a rule for another user than root counts as well."""
    for line in text.splitlines()[:500]:
        found = _RULE.fullmatch(line)
        if not found:
            continue
        words = found["what"].split()
        while words and words[0].endswith(":"):
            words.pop(0)
        plain = re.sub(r"\\([,:=])", r"\1", " ".join(words))
        yield plain if found["who"] == "root" else f"({found['who']}) {plain}"
