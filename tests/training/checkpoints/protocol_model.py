"""All states that ranks, their copies and their backups can reach, under four rules for slots.

A rank computes a step, enters the step's last collective, updates, and begins the copy into a slot;
copies and transfers end whenever they like. Rank r's backup is on the machine of rank r+1.
"""

from collections import deque
from collections.abc import Iterator
from enum import Enum
from itertools import chain
from typing import NamedTuple

from brctl.training.checkpoints.protocol import Save, Slots, decide_save, vote

DAMAGED = -1


class OverwriteRule(Enum):
    """When the slot of the oldest step may be overwritten."""

    BEFORE_UPDATE = (2, "2 slots, wait before the update")
    BEFORE_COLLECTIVE = (2, "2 slots, wait before the step's last collective")
    THREE_SLOTS = (3, "3 slots, wait before the update")
    EVERYONE_HAS_THE_OTHER = (2, "overwritten when everyone has the other one, own and backup")


class Rank(NamedTuple):
    """One rank: its update count, its slots, its backup's slots, and what is under way.

    Attributes:
        met: Through the collective of the coming step, not yet through its update.
        saves: What the agreement of that collective said.
        sending: The backup's slot and the step on its way there.
    """

    step: int
    met: bool
    saves: bool
    own: tuple[int, ...]
    backup: tuple[int, ...]
    copying: int | None
    sending: tuple[int, int] | None
    kept: Slots


State = tuple[Rank, ...]


def start(rule: OverwriteRule, ranks: int) -> State:
    """Everybody has step 1, own and backup."""
    slots = rule.value[0]
    held = (1,) + (DAMAGED,) * (slots - 1)
    rank = Rank(1, False, True, held, held, None, None, Slots(kept=1, kept_index=0))
    return (rank,) * ranks


def reachable(rule: OverwriteRule, ranks: int, *, sends: bool = True) -> Iterator[State]:
    """Every state, each once; of steps only their order is told apart.

    Args:
        rule: When a slot may be overwritten.
        ranks: How many there are.
        sends: Without, backups stay at the first step; far fewer states.
    """
    first = start(rule, ranks)
    observed, queue = {first}, deque([first])
    while queue:
        state = queue.popleft()
        yield state
        for following in map(_normal, _successors(rule, state, sends=sends)):
            if following not in observed:
                observed.add(following)
                queue.append(following)


def common_step(state: State, lost: int | None = None) -> bool:
    """Whether every shard has one step after all processes died, perhaps one machine with them."""
    shards = []
    for index, rank in enumerate(state):
        own = set(rank.own) if index != lost else set()
        backup = set(rank.backup) if (index + 1) % len(state) != lost else set()
        shards.append((own | backup) - {DAMAGED})
    return bool(set.intersection(*shards))


def common_own_step(state: State) -> bool:
    """The same from the ranks' own slots alone."""
    return bool(set.intersection(*(set(rank.own) for rank in state)) - {DAMAGED})


def _successors(rule: OverwriteRule, state: State, *, sends: bool) -> Iterator[State]:
    if all(not rank.met and _may_meet(rule, rank) for rank in state):
        yield _meet(rule, state)
    for index, rank in enumerate(state):
        for following in chain(_compute(rule, rank), _send(rank) if sends else ()):
            yield (*state[:index], following, *state[index + 1 :])


def _may_meet(rule: OverwriteRule, rank: Rank) -> bool:
    return rule is not OverwriteRule.BEFORE_COLLECTIVE or rank.copying is None


def _meet(rule: OverwriteRule, state: State) -> State:
    """The collective: nobody leaves it before all have entered; the votes travel with it."""
    agreed = min(vote(max(rank.own), max(rank.backup)) for rank in state)
    return tuple(rank._replace(met=True, saves=_saves(rule, rank, agreed)) for rank in state)


def _saves(rule: OverwriteRule, rank: Rank, agreed: int) -> bool:
    if rule is not OverwriteRule.EVERYONE_HAS_THE_OTHER:
        return True
    return decide_save(rank.kept, agreed) is Save.WRITE


def _compute(rule: OverwriteRule, rank: Rank) -> Iterator[Rank]:
    if rank.met:
        yield from _update(rule, rank)
    if rank.copying is not None:
        yield rank._replace(own=_put(rank.own, rank.copying, rank.step), copying=None)


def _send(rank: Rank) -> Iterator[Rank]:
    """A slot that is overwritten while it is sent arrives damaged."""
    if rank.sending is not None:
        index, step = rank.sending
        arrived = step if step in rank.own else DAMAGED
        yield rank._replace(sending=None, backup=_put(rank.backup, index, arrived))
    elif max(rank.own) > max(rank.backup):
        index = _oldest(rank.backup)
        backup = _put(rank.backup, index, DAMAGED)
        yield rank._replace(sending=(index, max(rank.own)), backup=backup)


def _update(rule: OverwriteRule, rank: Rank) -> Iterator[Rank]:
    """The update changes what is copied, so it waits for the copy under every rule."""
    if rank.copying is not None:
        return
    updated = rank._replace(step=rank.step + 1, met=False)
    if not rank.saves:
        yield updated
    elif rule is OverwriteRule.EVERYONE_HAS_THE_OTHER:
        kept = rank.kept.written(updated.step)
        yield _begin_copy(updated._replace(kept=kept), kept.kept_index)
    else:
        yield _begin_copy(updated, _oldest(rank.own))


def _begin_copy(rank: Rank, index: int) -> Rank:
    return rank._replace(copying=index, own=_put(rank.own, index, DAMAGED))


def _oldest(slots: tuple[int, ...]) -> int:
    return slots.index(min(slots))


def _put(slots: tuple[int, ...], index: int, step: int) -> tuple[int, ...]:
    return (*slots[:index], step, *slots[index + 1 :])


def _normal(state: State) -> State:
    """The same state with its steps numbered 1, 2, 3 ... in their order."""
    steps = sorted(set(chain.from_iterable(map(_steps, state))) - {DAMAGED})
    number = {DAMAGED: DAMAGED, **{step: index for index, step in enumerate(steps, 1)}}

    def renumber(slots: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(number[step] for step in slots)

    return tuple(
        rank._replace(
            step=number[rank.step], own=renumber(rank.own), backup=renumber(rank.backup),
            kept=Slots(number[rank.kept.kept], rank.kept.kept_index),
            sending=rank.sending and (rank.sending[0], number[rank.sending[1]]),
        )
        for rank in state
    )  # fmt: skip


def _steps(rank: Rank) -> tuple[int, ...]:
    sending = (rank.sending[1],) if rank.sending else ()
    return (rank.step, rank.kept.kept, *rank.own, *rank.backup, *sending)
