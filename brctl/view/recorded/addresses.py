"""Pseudonyms of addresses and device ids, made with a key; each is known for one by its beginning.

Addresses with a common beginning keep one, to the bit, so that a subnet stays a subnet.
"""

import hashlib
import hmac
import ipaddress
from collections.abc import Iterable

KEPT_NETWORKS = frozenset({0, 127, *range(224, 256)})
"""First numbers of addresses that name no machine of a site; pseudonyms lie among them."""

_FIRST_NETWORK, LAST_NETWORK = 240, 255
_MAC, _V6, _UUID = "02:00:5e:", "100:", "00000000"


def keyed_mac(key: bytes, name: str) -> str:
    """A locally administered address."""
    digest = _digest(key, "mac", name)
    tail = ":".join(digest[at : at + 2] for at in (0, 2, 4))
    return name if name.startswith(_MAC) else _MAC + tail


def keyed_uuid(key: bytes, name: str) -> str:
    """Of a GPU or a part of one: `GPU-00000000-...`."""
    head, rest = name.split("-", 1)
    digest = _digest(key, "uuid", name)
    made = f"{head}-{_UUID}-{digest[:4]}-{digest[4:8]}-{digest[8:12]}-{digest[12:24]}"
    return name if rest.startswith(_UUID) else made


def keyed_v4(key: bytes, name: str, given: Iterable[tuple[str, str]]) -> str:
    """Of an IPv4 address; `given` are those made before, so that each network has one place."""
    first, *_ = numbers = [int(part) for part in name.split(".")]
    bits = "".join(f"{number:08b}" for number in numbers[1:])
    flips = (int(_digest(key, "v4", str(first), bits[:at])[0], 16) & 1 for at in range(len(bits)))
    changed = "".join(str(int(bit) ^ flip) for bit, flip in zip(bits, flips, strict=True))
    rest = (int(changed[at : at + 8], 2) for at in (0, 8, 16))
    return ".".join(map(str, (_network(first, given), *rest)))


def _network(first: int, given: Iterable[tuple[str, str]]) -> int:
    """A number of its own for each first number; where they run out, one for the rest."""
    networks = {name.split(".")[0]: made.split(".")[0] for name, made in given if "." in name}
    taken = int(networks.get(str(first), 0))
    return taken or min(LAST_NETWORK, _FIRST_NETWORK + len(set(networks.values())))


def keyed_v6(key: bytes, whole: str) -> str:
    """Of an IPv6 address written in full, in the network that is discarded everywhere."""
    network, host = _digest(key, "v6", whole[:19]), _digest(key, "v6", whole)
    tail = ":".join(host[at : at + 4] for at in (0, 4, 8, 12))
    return str(ipaddress.IPv6Address(f"{_V6}0:0:{network[:4]}:{tail}"))


def names_nobody(text: str) -> bool:
    """Whether an IPv6 address is a pseudonym, this machine, or none."""
    return text.startswith(_V6) or text in ("::", "::1")


def _digest(key: bytes, *parts: str) -> str:
    return hmac.new(key, "\0".join(parts).encode(), hashlib.sha256).hexdigest()
