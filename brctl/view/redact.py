"""Take secrets out of what is kept: environment dumps, command lines and logs hold them."""

import re

HIDDEN = "[redacted]"

# Names people give to secrets, followed by `=`, `:` or a blank after an option. The name stays, so
# that a reader sees that something was there.
# Counted tokens are what a training log is about, and no secret.
_WORD = (
    r"(?:token(?!s|i[sz])|secret|passw(?:or)?d|passphrase|api[_-]?key|access[_-]?key|credential)"
)
_NAMED = re.compile(
    rf"""(?ix)
    ( [a-z0-9_-]* {_WORD} [a-z0-9_-]* ["']? \s* [=:] \s* ["']?
    | --[a-z0-9-]* {_WORD} [a-z0-9-]* \s+ )
    ( [^\s"',;&]+ )
    """
)
_AUTHORIZATION = re.compile(r"(?i)(authorization\s*[:=]\s*(?:bearer|basic)\s+)\S+")
_URL = re.compile(r"(?i)([a-z][a-z0-9+.-]*://[^\s/:@]+:)[^\s/@]+(@)")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL
)
# Shapes that are secrets whatever they are called.
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|AKIA[0-9A-Z]{16}|xox[abpr]-[A-Za-z0-9-]{10,}"
    r"|glpat-[A-Za-z0-9_-]{16,})"
)


def redact(text: str) -> str:
    """The text without the secrets that can be recognised.

    Examples:
        >>> redact("WANDB_API_KEY=abc123 RANK=3")
        'WANDB_API_KEY=[redacted] RANK=3'
    """
    text = _PRIVATE_KEY.sub(HIDDEN, text)
    text = _AUTHORIZATION.sub(rf"\g<1>{HIDDEN}", text)
    text = _URL.sub(rf"\g<1>{HIDDEN}\g<2>", text)
    text = _SHAPES.sub(HIDDEN, text)
    return _NAMED.sub(rf"\g<1>{HIDDEN}", text)
