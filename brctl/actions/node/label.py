"""node.label: write labels on nodes where the scheduler keeps them, and put back what was there."""

import re
from collections.abc import Iterable, Mapping, Sequence

from brctl.actions import arguments
from brctl.actions.context import RunContext
from brctl.actions.contract import (
    ActionFailed,
    ActionResult,
    FailureKind,
    Observation,
    VerbImplementation,
)
from brctl.backends.contract import Label
from brctl.model.nodeset import fold
from brctl.model.runs.plan import Change, Sign
from brctl.model.runs.playbook import Arguments

PREFIX = "brctl.dev/"
PEOPLE = "brctl:people"
"""Owner of what people set by hand; a run's own labels are not theirs to take."""

RESERVED = frozenset(
    {"cordoned", "cordoned-by", "cordoned-at", "reason", "reserved", "reserved-by", "reserved-at",
     "job", "role", "nodes", "checkpoint", "incarnation"}
)  # fmt: skip
"""What brctl itself writes on nodes and jobs."""

# Kubernetes' syntax, the narrowest of all schedulers.
_KEY = re.compile(r"[a-z0-9]([a-z0-9._-]{0,40}[a-z0-9])?")
_VALUE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")


class NodeLabel(VerbImplementation):
    """See the head of this file. `set: {burnin: due}`; the prefix `brctl.dev/` may be written.

    `remove: [burnin]` takes back what this run set, as undo would; so it has no undo of its own.
    `owner: people` sets and takes back in the name of all people instead of this run: what one
    `brctl nodes label` set another one takes back. Both may be text then, `a=1,b=2` and `a,b`.
    """

    async def observe(self, context: RunContext, args: Arguments) -> Observation:
        names, wanted, removed = arguments.nodes(args, "nodes"), _wanted(args), _removed(args)
        found = await _labels(context, names, [*wanted, *removed])
        written = all(_value(found[n].get(k)) == v for n in names for k, v in wanted.items())
        gone = not any(
            found[n][k].owner == _owner(context, args)
            for n in names
            for k in removed
            if k in found[n]
        )
        changes = [f"labelled {_say(wanted)}"] if wanted else []
        changes += [f"without {', '.join(removed)}"] if removed else []
        say = f"{fold(names)} {' and '.join(changes)}"
        return Observation(written and gone, {"labelled": list(names)}, say)

    async def plan(self, context: RunContext, args: Arguments) -> Sequence[Change]:
        if not arguments.is_known(args, "nodes", "set", "remove"):
            return (Change(Sign.ALTER, arguments.UNKNOWN_TEXT, "labelled"),)
        names = arguments.nodes(args, "nodes")
        if arguments.UNKNOWN_TEXT in str(args.get("set")):
            return tuple(Change(Sign.ALTER, node, "labelled") for node in names)
        wanted, removed = _wanted(args), _removed(args)
        found = await _labels(context, names, [*wanted, *removed])
        after = {(node, key): value for node in names for key, value in wanted.items()} | {
            (node, key): found[node][key].former or "none"
            for node in names
            for key in removed
            if key in found[node] and found[node][key].owner == _owner(context, args)
        }
        return tuple(
            Change(Sign.ALTER, node, f"label {key}: {_value(found[node].get(key))} -> {value}")
            for (node, key), value in after.items()
            if _value(found[node].get(key)) != value
        )

    async def apply(self, context: RunContext, args: Arguments) -> ActionResult:
        names, wanted = arguments.nodes(args, "nodes"), _wanted(args)
        before = await self.observe(context, args)
        for key, value in wanted.items():
            await context.backend.label(names, key, value, _owner(context, args))
        for key in _removed(args):
            await context.backend.unlabel(names, key, _owner(context, args))
        after = await self.observe(context, args)
        if not after.done:
            raise ActionFailed(f"{fold(names)} has not the labels", FailureKind.SCHEDULER)
        return ActionResult(after.out, changed=not before.done, say=after.say)

    async def undo(self, context: RunContext, args: Arguments) -> ActionResult:
        names, wanted = arguments.nodes(args, "nodes"), _wanted(args)
        found = await _labels(context, names, wanted)
        owner = _owner(context, args)
        own = [n for n in names if any(x.owner == owner for x in found[n].values())]
        for key in wanted:
            await context.backend.unlabel(own, key, owner)
        return ActionResult(
            {"labelled": own}, changed=bool(own), say=f"labels of {fold(own)} put back"
        )


def _owner(context: RunContext, args: Arguments) -> str:
    owner = arguments.text(args, "owner", "run")
    if owner not in ("run", "people"):
        raise ActionFailed(f"`owner` must be run or people, not {owner!r}")
    return PEOPLE if owner == "people" else context.owner_mark


def _wanted(args: Arguments) -> dict[str, str]:
    value = args.get("set", {})
    if isinstance(value, str):
        value = dict(part.partition("=")[::2] for part in value.split(",") if part)
    if not isinstance(value, Mapping) or not (value or args.get("remove")):
        raise ActionFailed(f"`set` must map labels to values, not {value!r}")
    wanted = {str(key).removeprefix(PREFIX): str(text) for key, text in value.items()}
    for key, text in wanted.items():
        check_label(key, text)
    return wanted


def check_label(key: str, text: str) -> None:
    """Whether brctl may write this label; ActionFailed says why not."""
    if key in RESERVED:
        raise ActionFailed(f"label {key!r} is written by brctl itself; choose another name")
    if not _KEY.fullmatch(key) or not _VALUE.fullmatch(text):
        raise ActionFailed(f"{key}={text!r}: a label has letters, digits, dot, dash, underscore")


def _removed(args: Arguments) -> tuple[str, ...]:
    value = args.get("remove")
    if isinstance(value, str):
        return tuple(key.removeprefix(PREFIX) for key in value.split(",") if key)
    listed = arguments.texts(args, "remove") if "remove" in args else ()
    return tuple(key.removeprefix(PREFIX) for key in listed)


async def _labels(
    context: RunContext, names: Sequence[str], wanted: Iterable[str]
) -> dict[str, dict[str, Label]]:
    """Labels by node and key, of the keys that are wanted."""
    found: dict[str, dict[str, Label]] = {name: {} for name in names}
    for key in wanted:
        for node, label in (await context.backend.labels(names, key)).items():
            found[node][key] = label
    return found


def _value(label: Label | None) -> str:
    return "none" if label is None else label.value


def _say(wanted: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in wanted.items())
