"""Secrets in the shapes that command lines, environments, logs and configuration give them."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping
from urllib.parse import quote, unquote

# Put together here, so that no scanner of repositories takes the samples for real ones.
_JWT = "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIxMjM0NTY3ODkwIn0." + "dozjgNryP4J3jVmNHl0w5N"
_SLACK = "https://hooks.slack.com/services/" + "T00000000/B00000000/" + "Q7" * 12
_AWS = "wJalrXUtnFEMI" + "K7MDENGbPxRfiCYEXAMPLEKEY12"

PLANTED: Mapping[str, tuple[str, str]] = {
    "API key in the environment": ("WANDB_API_KEY=planted0001abc", "planted0001abc"),
    "token in the environment": ("HF_TOKEN=planted0002abc", "planted0002abc"),
    "option": ("train.py --token planted0003abc --steps 5", "planted0003abc"),
    "header": ("Authorization: Bearer planted0004abc", "planted0004abc"),
    "URL with user and password": ("https://me:planted0005@git.example.com/x", "planted0005"),
    "private key": (
        "-----BEGIN OPENSSH PRIVATE KEY-----\nplanted0006abc\n-----END OPENSSH PRIVATE KEY-----",
        "planted0006abc",
    ),
    "AWS secret": (f"aws_secret_access_key = {_AWS}", _AWS),
    "AWS session": ("AWS_SESSION_TOKEN=planted0008//abc", "planted0008//abc"),
    "password in YAML": ("password: planted0009", "planted0009"),
    "client secret": ('client_secret="planted0010"', "planted0010"),
    "JSON in JSON": ('{"body": "{\\"password\\": \\"planted0011\\"}"}', "planted0011"),
    "Authorization in JSON": ('{"Authorization": "Bearer planted0012"}', "planted0012"),
    "Authorization in Python": ("{'Authorization': 'Bearer planted0013'}", "planted0013"),
    "netrc": ("machine h.example.com login me password planted0014", "planted0014"),
    "prose": ("the password for admin is planted0015", "planted0015"),
    "JSON web token": (f"sent {_JWT}", "dozjgNryP4J3"),
    "SAS signature": ("https://x.blob.example.com/c?sv=1&sig=planted0017%3D", "planted0017"),
    "cookie": ("Cookie: session=planted0018; theme=dark", "planted0018"),
    "URL with only a token": ("https://planted0019abcdefghi@github.com/x.git", "planted0019"),
    "URL without user": ("redis://:planted0020@h:6379/0", "planted0020"),
    "curl -u": ("curl -s -u me:planted0021 https://h", "planted0021"),
    "mysql -p": ("mysql -u root -pplanted0022 jobs", "planted0022"),
    "DB_PASS": ("DB_PASS=planted0023", "planted0023"),
    "REDIS_PWD": ("REDIS_PWD=planted0024", "planted0024"),
    "OPENAI_KEY": ("OPENAI_KEY=planted0025", "planted0025"),
    "chat web hook": (_SLACK, "Q7" * 12),
    "routing key": ("routing_key: planted0027", "planted0027"),
    "quoted with blanks": ('password: "correct planted0028 battery"', "planted0028"),
    "value with commas": ("PASSWORD=first,planted0029,third", "planted0029"),
    "bare bearer": ("sent bearer planted0030abc", "planted0030abc"),
    "provider's key": ("client made with sk-planted0031abcdefgh", "planted0031"),
}
"""Text and the part that must be gone, by shape."""

FORMS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda text: text,
    "JSON": lambda text: json.dumps({"line": text}),
    "JSON in JSON": lambda text: json.dumps({"stdout": json.dumps({"value": text})}),
    "list of arguments": lambda text: json.dumps(
        {"launch": text.split(" ") if " --" in text else [text]}
    ),
    "base64": lambda text: f"blob {base64.b64encode(text.encode()).decode()} end",
    "base64 twice": lambda text: base64.b64encode(base64.b64encode(text.encode())).decode(),
    "URL": lambda text: f"GET /x?q={quote(text, safe='')}",
}
"""What a text may be packed in on its way into a log."""

_MAYBE_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}")


def opened(text: str, depth: int = 3) -> Iterator[str]:
    """A text in every way somebody may read it: as it is, and unpacked from each of the forms."""
    yield text
    yield unquote(text)
    for word in _MAYBE_BASE64.findall(text) if depth else ():
        for start in range(4):
            part = word[start:].replace("-", "+").replace("_", "/")
            try:
                plain = binascii.a2b_base64(part[: len(part) // 4 * 4] + _end(part))
            except ValueError:
                continue
            yield from opened(plain.decode("latin-1"), depth - 1)


def _end(part: str) -> str:
    over = len(part) % 4
    return part[-over:] + "=" * (4 - over) if over > 1 else ""
