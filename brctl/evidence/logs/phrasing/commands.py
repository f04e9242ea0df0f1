"""Commands that somebody typed: they name what is looked for or set, and tell of nothing seen.

Known by the prompt before them and the word of a command behind it: what a console prints behind a
prompt (`root@n7:~# [ 81.2] NVRM: ...`) begins otherwise. What stands behind an arrow is the answer.
"""

import re

_WORD = r"(?:sudo |time )?(?:[a-z_]\w*=\S* )?(?=[a-z./~])[\w./~+-]{1,80}(?=\s|$)"
_KNOWN = (
    r"(?:awk|cat|curl|dcgmi|dmesg|docker|egrep|ethtool|exec|for \w+ in|grep|hl-smi|ibdiagnet|"
    r"ibqueryerrors|ibstat|ipmitool|journalctl|kubectl|lspci|modprobe|mpirun|npu-smi|nvidia-smi|"
    r"perfquery|python3?|rocm-smi|sacct|scontrol|sed|sinfo|srun|ssh|sudo|systemctl|torchrun|zgrep)"
    r"(?=\s|$)(?! (?:says?|said|shows?|showed|reports?|reported|prints?|printed|gives?|gave|has|"
    r"had|is|was)\b)"
)
"""Commands that no person's remark behind a `#` begins with, but for one about them."""

_TYPED = re.compile(
    r"\s*(?:"
    rf"(?:\([\w.-]{{1,40}}\) ?)?\[[\w.-]{{1,40}}@[\w.-]{{1,60}} [^\]\n]{{1,60}}\] ?[#$] ?{_WORD}|"
    rf"(?:\([\w.-]{{1,40}}\) ?)?[\w.-]{{1,40}}@[\w.-]{{1,60}}:[^\s#$]{{0,80}} ?[#$] ?{_WORD}|"
    rf"[\w.-]{{1,60}}:[~/][^\s#$]{{0,80}} ?[#$] {_WORD}|"
    rf"[\w.-]{{0,60}}:? ?\$ {_WORD}|(?:#+|\++) {_KNOWN}|\++ [A-Z_]{{2,}}=|(?:export|alias) \w+="
    r")",
    re.ASCII,
)
_ANSWER = re.compile(r" [-=]> ")


def is_command(text: str, end: int | None = None) -> bool:
    """Whether a line is a command that was typed, as far as the character before `end`."""
    if _TYPED.match(text) is None:
        return False
    return _ANSWER.search(text, 0, len(text) if end is None else end) is None
