"""What secrets look like in a text: by the name before them, by what stands around, by shape.

A node writes what is searched here, so every pattern takes time in proportion to the text:
repetitions are bounded, and unbounded ones begin only where the run of their characters does.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

# Names people give to secrets. Counted tokens are what a training log is about, and no secret.
_OWNER = r"(?:db|root|admin|user|http|smtp|mail|redis|mysql|pg|postgres|proxy|ssh|ftp|ldap|bind)"
_USE = (
    r"(?:api|access|account|auth|client|encryption|private|session|shared|signing|routing"
    r"|integration|service|license|master|storage|webhook|deploy|subscription)"
)
_COUNTED = r"token(?!s|i[sz]|_(?:loss|acc|rate|time|count|len|id|per|num|prob|budget))"
WORD = (
    rf"(?:{_COUNTED}|secret|passw(?:or)?d|passphrase|passcode|credential|[_;-]pwd"
    rf"|{_OWNER}[_-]?pass(?![a-z])|{_USE}[_-]?key)"
)
_QUOTE = r"""(?:\\{0,7}["'])?"""
_IS = rf"{_QUOTE}\s{{0,4}}[=:]\s{{0,4}}"
# A comma ends a value only where another name follows it.
_VALUE = (
    r"""(?:\\{0,7}"[^"\n]{1,512}"|\\{0,7}'[^'\n]{1,512}'"""
    r"""|\\{0,7}["']?[^\s"',;&]+(?:,(?![\w.-]{1,64}[=:])[^\s"',;&]+)*)"""
)
_PLAIN_VALUE = r"""[^\s"'`,;]*"""
_NO_VALUE = re.compile(r"""[\s=:\\"']*""")
"""A line that may stand between a name and its value."""
_ENCODED = r"A-Za-z0-9+/=_-"


@dataclass(frozen=True, slots=True)
class SecretShape:
    """One kind of secret.

    Attributes:
        name: What a report calls it.
        hints: Small letters, some of which stand in every text the pattern fits: most texts hold
            none, and are not searched.
        by_line: Searched only in lines with a hint and what follows them at once.
        pattern: Its first group, where it has one, stands before the secret and stays.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    by_line: bool = False

    def replace(self, take: Callable[[re.Match[str]], str], text: str) -> str:
        """The text, which has a hint, with what `take` makes of each match."""
        if not self.by_line:
            return self.pattern.sub(take, text)
        return "".join(
            self.pattern.sub(take, part) if hinted else part for part, hinted in self._parts(text)
        )

    def may_stand_in(self, small: str) -> bool:
        """Whether a text, in small letters, has one of the hints."""
        return any(hint in small for hint in self.hints)

    def _parts(self, text: str) -> Iterator[tuple[str, bool]]:
        """The text in runs of lines that are searched or not."""
        after = False
        part: list[str] = []
        hinted = False
        for line in text.splitlines(keepends=True):
            holds = self.may_stand_in(line.lower())
            if (holds or after) is not hinted:
                yield "".join(part), hinted
                part, hinted = [], holds or after
            part.append(line)
            after = holds or (after and bool(_NO_VALUE.fullmatch(line)))
        yield "".join(part), hinted


def _rules(
    name: str,
    hints: str,
    *patterns: str,
    flags: int = re.IGNORECASE,
    by_line: bool = False,
) -> tuple[SecretShape, ...]:
    return tuple(
        SecretShape(name, tuple(hints.split()), re.compile(pattern, flags), by_line)
        for pattern in patterns
    )


RULES: tuple[SecretShape, ...] = (
    *_rules(
        "private key",
        "private",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----.*?"
        r"(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)",
        flags=re.DOTALL,
    ),
    *_rules(
        "header",
        "authorization bearer negotiate cookie",
        rf"(authorization{_IS}{_QUOTE}(?:digest|aws4-hmac-sha256)\s{{1,4}})[^\r\n]+",
        rf"(authorization{_IS}{_QUOTE}(?:[a-z]{{1,20}}\s{{1,4}})?)[^\s\"',\\]+",
        r"(\b(?:bearer|negotiate)\s{1,4})[a-z0-9._~+/=-]{8,}",
        rf"(cookie{_IS}{_QUOTE})[^\"'\r\n]+",
    ),
    *_rules(
        "URL",
        ":// sig= signature= key= code= auth= jwt= sas= x-amz x-goog",
        r"(://[^\s/:@\"']{0,256}:)[^\s/@\"']{1,512}(?=@)",
        r"(://)[^\s/:@\"']{16,256}(?=@)",
        r"([?&](?:sig|signature|key|code|auth|jwt|sas|x-(?:amz|goog)-[a-z-]{1,30})=)[^\s&\"'#]+",
    ),
    *_rules(
        "web hook",
        "hook telegram",
        r"(hooks\.slack\.com/(?:services|workflows|triggers)/)[^\s\"'<>]+",
        r"(discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/)[^\s\"'<>]+",
        r"((?:outlook|webhook)\.office(?:365)?\.com/webhook(?:b2)?/)[^\s\"'<>]+",
        r"(api\.telegram\.org/bot)[^\s\"'/]+",
        r"(/hooks/)[a-z0-9]{16,}",
    ),
    *_rules(
        "command line",
        "machine sshpass curl mysql mariadb mongo redis-cli identified",
        r"(machine\s{1,8}\S{1,255}(?:\s{1,8}(?:login|account)\s{1,8}\S{1,255}){0,2}"
        r"\s{1,8}password\s{1,8})\S+",
        r"(sshpass\s{1,4}-p\s{0,4})\S+",
        r"(\bcurl\s[^\n]{0,200}?\s-u\s{0,4}[^\s:]{0,128}:)\S+",
        r"(\b(?:mysql|mysqldump|mysqladmin|mariadb|mongo|mongosh)\s(?:[^\n]{0,200}?\s)?-p)[^\s-]\S*",
        r"(\bredis-cli\s(?:[^\n]{0,200}?\s)?-a\s{1,4})\S+",
        r"(identified\s{1,4}by\s{1,4}['\"])[^'\"\n]{1,256}",
    ),
    # {"name": "DB_PASSWORD", "value": "..."}, as containers list their environment.
    *_rules(
        "name and value",
        "name",
        rf"(name{_IS}{_QUOTE}[\w.-]{{0,64}}{WORD}[\w.-]{{0,64}}{_QUOTE}[\s,-]{{1,64}}"
        rf"{_QUOTE}value{_IS}){_VALUE}",
    ),
    # Shapes that are secrets whatever they are called.
    *_rules(
        "token",
        "hf_ gh github_ gl akia asia aiza ya29. xox xapp- sk- k_live k_test npm_ pypi- dop_v1_ hv"
        " sg. dapi nvapi- age-secret-key eyj",
        r"(?<![A-Za-z0-9_-])(?:"
        r"hf_[A-Za-z0-9]{20,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"
        r"|gl[a-z]{2,5}-[A-Za-z0-9_-]{16,}|(?:AKIA|ASIA)[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}"
        r"|ya29\.[A-Za-z0-9_-]{20,}|xox[a-z]-[A-Za-z0-9-]{10,}|xapp-[A-Za-z0-9-]{10,}"
        r"|sk-[A-Za-z0-9_-]{16,}|[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{30,}"
        r"|pypi-[A-Za-z0-9_-]{30,}|dop_v1_[a-f0-9]{40,}|hv[sb]\.[A-Za-z0-9_-]{20,}"
        r"|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|dapi[a-f0-9]{32}|nvapi-[A-Za-z0-9_-]{20,}"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{40,}"
        r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)",
        flags=0,
    ),
    *_rules(
        "named",
        "token secret pass credential pwd key",
        rf"({WORD}[a-z0-9_-]{{0,64}}{_IS}"
        rf"|(?<![a-z0-9-])--[a-z0-9-]{{0,64}}{WORD}[a-z0-9-]{{0,64}}\s{{1,4}}){_VALUE}",
        by_line=True,
    ),
    *_rules("named", "_key _pass", rf"([A-Z0-9]_(?:KEY|PASS){_IS}){_VALUE}", flags=0),
    *_rules(
        "prose",
        "password passphrase passcode secret token",
        r"(\b(?:password|passphrase|passcode|secret|token)(?:\s{1,4}[a-z]{1,20}){0,4}?"
        r"\s{1,4}(?:is|was)\s{1,4}[\"'`]?)(?=[^\s\"'`,;]{0,64}[0-9!@#$%^&*])"
        rf"[^\s\"'`,;]{{4}}{_PLAIN_VALUE}",
    ),
)

_HINT = re.compile("|".join(re.escape(hint) for rule in RULES for hint in rule.hints))
LONG_WORD = 16
"""Characters; shorter words are no base64 and no key."""


def may_hold_secret(text: str) -> bool:
    """Whether any rule could find something in a word that was unpacked, or it is packed twice."""
    is_long = len(text) >= LONG_WORD
    return is_long or "%" in text or _HINT.search(text.lower()) is not None


SECRET_NAME = re.compile(rf"(?i:{WORD})|[A-Z0-9]_(?:KEY|PASS)\Z")

RANDOM_WORD = re.compile(r"(?<![A-Za-z0-9+/_.-])[A-Za-z0-9+/_-]{32,}={0,2}(?![A-Za-z0-9+/_.=-])")
"""A word as long as a key; whether it is one, `is_random` knows."""

BASE64 = re.compile(
    rf"(?<![{_ENCODED}])(?:[A-Za-z0-9+/]{{60,76}}\r?\n){{1,}}[A-Za-z0-9+/]{{1,76}}={{0,2}}"
    r"|(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{16,}={0,2}"
)
"""What may be base64: one word, or lines of one width as `base64` and PEM wrap them."""

URL_ENCODED = re.compile(r"(?<![\w.~+%-])[\w.~+-]*(?:%[0-9A-Fa-f]{2}[\w.~+-]*)+")

_CLASSES = (re.compile(r"[a-z]"), re.compile(r"[A-Z]"), re.compile(r"[0-9]"))
_TURN = re.compile(
    r"(?<=[a-z])[^a-z]|(?<=[A-Z])[^A-Z]|(?<=[0-9])[^0-9]|(?<=[^A-Za-z0-9])[A-Za-z0-9]"
)
_TURNS_A_CHARACTER = 0.45
"""In random text six of ten characters are of another class than the one before; in names of
functions, mangled ones too, at most three of ten."""

_LINE_OF_KEY = 60
_DIGEST = re.compile(r"(?<![A-Za-z])[0-9a-f]{8,}(?:-[0-9a-f]{4,})*")

_SLASHES = 16
"""In base64 every 64th character is one; a path has more."""


def is_random(word: str) -> bool:
    """Whether a long word is drawn at random as keys are; digests, UUIDs, paths, names are not."""
    if "+0x" in word or word.startswith("_Z"):
        return False
    if word.count("/") * _SLASHES > max(len(word), 2 * _SLASHES):
        return False
    rest = _DIGEST.sub("", word)
    if not all(kind.search(rest) for kind in _CLASSES):
        return False
    a_line = len(rest) >= _LINE_OF_KEY and not {"_", "-"} & set(rest)
    return a_line or len(_TURN.findall(rest)) >= _TURNS_A_CHARACTER * len(rest)
