"""Take secrets out of what is kept: environment dumps, command lines and logs hold them.

A node writes what is read here, so every pattern takes time in proportion to the text: repetitions
are bounded, and unbounded ones begin only where the run of their characters does.
"""

import re

HIDDEN = "[redacted]"
LIMIT = 16 << 20
"""Characters that are looked through; what follows is not kept at all."""

# Names people give to secrets. The name stays, so that a reader sees that something was there.
# Counted tokens are what a training log is about, and no secret.
_WORD = (
    r"(?:token(?!s|i[sz])|secret|passw(?:or)?d|passphrase|credential|[_;-]pwd"
    r"|(?:api|access|account|auth|client|encryption|private|session|shared|signing)[_-]?key)"
)
_QUOTE = r"""(?:\\?["'])?"""
_IS = rf"{_QUOTE}\s{{0,4}}[=:]\s{{0,4}}"
_VALUE = r"""(?:\\?"[^"\n]{1,512}"|\\?'[^'\n]{1,512}'|\\?["']?[^\s"',;&]+)"""
_NAMED = re.compile(
    rf"(?i)({_WORD}[a-z0-9_-]{{0,64}}{_IS}|(?<![a-z0-9-])--[a-z0-9-]{{0,64}}{_WORD}[a-z0-9-]{{0,64}}\s{{1,4}})"
    rf"{_VALUE}"
)
# {"name": "DB_PASSWORD", "value": "..."}, as containers list their environment.
_PAIR = re.compile(
    rf"(?i)(name{_IS}{_QUOTE}[\w.-]{{0,64}}{_WORD}[\w.-]{{0,64}}{_QUOTE}[\s,-]{{1,64}}"
    rf"{_QUOTE}value{_IS}){_VALUE}"
)
_BEFORE: tuple[re.Pattern[str], ...] = tuple(
    re.compile(pattern)
    for pattern in (
        rf"(?i)(authorization{_IS}{_QUOTE}(?:digest|aws4-hmac-sha256)\s{{1,4}})[^\r\n]+",
        rf"(?i)(authorization{_IS}{_QUOTE}(?:[a-z]{{1,20}}\s{{1,4}})?)[^\s\"',]+",
        r"(?i)(\b(?:bearer|negotiate)\s{1,4})[a-z0-9._~+/=-]{8,}",
        rf"(?i)(cookie{_IS}{_QUOTE})[^\"'\r\n]+",
        r"(://[^\s/:@\"']{0,256}:)[^\s/@\"']{1,512}(?=@)",
        r"(://)[^\s/:@\"']{16,256}(?=@)",
        r"(?i)([?&](?:sig|signature|key|code|auth|jwt|sas|x-(?:amz|goog)-[a-z-]{1,30})=)[^\s&\"'#]+",
        r"(?i)(hooks\.slack\.com/(?:services|workflows|triggers)/)[^\s\"'<>]+",
        r"(?i)(discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/)[^\s\"'<>]+",
        r"(?i)((?:outlook|webhook)\.office(?:365)?\.com/webhook(?:b2)?/)[^\s\"'<>]+",
        r"(?i)(api\.telegram\.org/bot)[^\s\"'/]+",
        r"(?i)(/hooks/)[a-z0-9]{16,}",
        r"(?i)(machine\s{1,8}\S{1,255}(?:\s{1,8}(?:login|account)\s{1,8}\S{1,255}){0,2}"
        r"\s{1,8}password\s{1,8})\S+",
        r"(sshpass\s{1,4}-p\s{0,4})\S+",
        r"(?i)(\bcurl\s[^\n]{0,200}?\s-u\s{0,4}[^\s:]{1,128}:)\S+",
        r"(?i)(identified\s{1,4}by\s{1,4}['\"])[^'\"\n]{1,256}",
    )
)
"""What stands before a secret and stays; the secret follows it."""

_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# Shapes that are secrets whatever they are called.
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
    r"|gl[a-z]{2,5}-[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}"
    r"|ya29\.[A-Za-z0-9_-]{20,}|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
    r"|sk-[A-Za-z0-9_-]{20,}|[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}"
    r"|pypi-[A-Za-z0-9_-]{30,}|dop_v1_[a-f0-9]{40,}|hv[sb]\.[A-Za-z0-9_-]{20,}"
    r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|dapi[a-f0-9]{32}|nvapi-[A-Za-z0-9_-]{20,}"
    r"|AGE-SECRET-KEY-1[A-Z0-9]{40,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{60,}={0,2}(?![A-Za-z0-9+/=_.-])")
_CASES = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]"))
_SLASHES = 16
"""In base64 every 64th character is one; a path has more."""

_SECRET_NAME = re.compile(rf"(?i){_WORD}")


def redact(text: str) -> str:
    """The text without the secrets that can be recognised.

    Examples:
        >>> redact("WANDB_API_KEY=abc123 RANK=3")
        'WANDB_API_KEY=[redacted] RANK=3'
    """
    more = len(text) - LIMIT
    text = _PRIVATE_KEY.sub(HIDDEN, text[:LIMIT])
    for pattern in (*_BEFORE, _PAIR):
        text = pattern.sub(rf"\g<1>{HIDDEN}", text)
    text = _SHAPES.sub(HIDDEN, text)
    text = _BASE64.sub(_hide_key, text)
    text = _NAMED.sub(rf"\g<1>{HIDDEN}", text)
    return f"{text}\n[{more} characters more were not kept]" if more > 0 else text


def redact_document(value: object) -> object:
    """A document without secrets: in its texts, and below keys that name one.

    Examples:
        >>> redact_document({"env": [{"name": "DB_PASSWORD", "value": "x"}]})
        {'env': [{'name': 'DB_PASSWORD', 'value': '[redacted]'}]}
    """
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, (list, tuple)):
        return [redact_document(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = any(_is_secret(value.get(key)) for key in ("name", "key", "Name", "Key"))
    return {
        str(key): HIDDEN if _hides(key, item, named=named) else redact_document(item)
        for key, item in value.items()
    }


def _hides(key: object, item: object, *, named: bool) -> bool:
    is_text = isinstance(item, str) and bool(item)
    return is_text and (_is_secret(key) or (named and str(key).lower() == "value"))


def _is_secret(name: object) -> bool:
    return isinstance(name, str) and bool(_SECRET_NAME.search(name[:300]))


def _hide_key(match: re.Match[str]) -> str:
    """A line of a key that came without its head; a digest or a path stays."""
    text = match[0]
    mixed = all(case.search(text) for case in _CASES)
    return HIDDEN if mixed and text.count("/") * _SLASHES <= len(text) else text
