"""How checkpoints are named in each layout, and which of them names what step.

A row of the table is a layout and the names it gives to checkpoints; how one is read stands in
`checks/_checkpoints`, a module a row.
"""

import re
from collections.abc import Mapping

_STEP = "(?P<step>[0-9]{1,18})"
_WORD = "[A-Za-z0-9_=+,.@-]"

CHECKPOINT_NAMES: Mapping[str, str] = {
    "torch-dcp": f"step-{_STEP}",
    "megatron": f"iter_{_STEP}",
    "deepspeed": f"global_step{_STEP}",
    "lightning": f"[A-Za-z0-9_]{_WORD}{{0,120}}?step={_STEP}(?:[-.]{_WORD}{{1,80}})?"
    "|last(?:-v[0-9]{1,9})?\\.ckpt",
    "hf-trainer": f"checkpoint-{_STEP}",
    "torch-save": "",
}
"""Names by layout, as a regular expression; "" where only the job's own pattern says."""

STEP_INSIDE = ("lightning", "torch-save")
"""Layouts whose files tell their step themselves, so that a pattern need not."""

_PATTERN = re.compile(r"(?:[A-Za-z0-9_]|\{step\})(?:[A-Za-z0-9_=+,.@*-]|\{step\}){0,99}")
_WILDCARDS = 3


def names_of_pattern(layout: str, pattern: str) -> str:
    r"""The regular expression of a pattern as job.yaml writes it, `ckpt_{step}.pt`.

    Raises:
        ValueError: What is wrong with the pattern.

    Examples:
        >>> names_of_pattern("torch-save", "ckpt_{step}.pt")
        'ckpt_(?P<step>[0-9]{1,18})\\.pt'
    """
    if not _PATTERN.fullmatch(pattern):
        raise ValueError("is a name with letters, digits, _=+,.@-, * and {step}")
    if pattern.count("{step}") > 1 or pattern.count("*") > _WILDCARDS:
        raise ValueError(f"has more than one {{step}} or more than {_WILDCARDS} *")
    if "{step}" not in pattern and layout not in STEP_INSIDE:
        raise ValueError(f"needs {{step}}: only its name tells the step of a {layout} checkpoint")
    texts = (re.escape(text).replace(r"\*", f"{_WORD}*") for text in pattern.split("{step}"))
    return _STEP.join(texts)


def checkpoint_names(layout: str, pattern: str) -> str:
    """The regular expression of the names of checkpoints in a layout, or of a job's own pattern."""
    return names_of_pattern(layout, pattern) if pattern else CHECKPOINT_NAMES[layout]
