"""Keep an incident file within a size: whoever is accused and beside whom goes first."""

from collections.abc import Mapping, Sequence

import zstandard

from brctl.engine.recording.look import Look

DEFAULT_BYTES = 64 << 20
_LEVEL = 3
_SPARE = 0.9
"""How much of the room is filled: what is left packs a little worse than the whole."""


def packed_bytes(members: Mapping[str, bytes]) -> int:
    """About what these members take in a file."""
    packer = zstandard.ZstdCompressor(level=_LEVEL)
    return len(packer.compress(b"".join(members.values())))


def fitted(
    look: Look, asked: Sequence[str], answers: bytes, room_bytes: float, cuts: list[str]
) -> bytes:
    """The lines of answers that there is room for; `asked` names the node of each.

    What is left out is a gap when the look is judged again, and is told in `cuts`.
    """
    lines = answers.split(b"\n")[: len(asked)]
    size = packed_bytes({"": answers})
    if size <= room_bytes:
        return answers
    room = room_bytes / max(1, size) * len(answers) * _SPARE
    rank = _ranks(look)
    kept: set[int] = set()
    for number in sorted(range(len(lines)), key=lambda at: (rank[asked[at]], at)):
        room -= len(lines[number])
        if room < 0:
            break
        kept.add(number)
    lost = len({asked[at] for at in range(len(lines)) if at not in kept})
    cuts.append(f"look {look.id}: answers of {lost} nodes, for the size of the file")
    return b"".join(lines[at] + b"\n" for at in sorted(kept))


def _ranks(look: Look) -> Mapping[str, int]:
    """0 the accused, 1 one neighbour of each in the inventory, 2 everybody else."""
    accused = {name for verdict in look.verdicts for name in verdict.nodes}
    accused |= {name for v in look.verdicts for other in v.alternatives for name in other.nodes}
    order = list(look.inventory.nodes)
    beside = {order[(at + 1) % len(order)] for at, name in enumerate(order) if name in accused}
    return {name: 0 if name in accused else 1 if name in beside else 2 for name in order}
