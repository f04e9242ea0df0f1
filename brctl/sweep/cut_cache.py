"""What a bundle needs beside its probes, worked out once and kept in the user's cache.

Cutting pynvml and finding the probes' imports costs 70 ms of every sweep, a third of its start-up.
What is kept runs on nodes, so it is believed only from a file and a folder that are this user's and
that nobody else may write; anything odd about it is a reason to work it out again.
"""

import contextlib
import hashlib
import importlib.util
import json
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from brctl.library.config import user_cache_dir
from brctl.library.durable_files import private_dir, write_atomic
from brctl.sweep import vendor

FILES_KEPT = 8
"""One for each set of checks that is asked: a sweep's, a preflight's, single ones."""

_SIZE_LIMIT_BYTES = 4 << 20


def bundle_parts(light: Sequence[str], nvml: Sequence[str]) -> tuple[list[str], str | None]:
    """Modules to import before the probes run, and the part of pynvml to send, if any.

    Args:
        light: Sources of all probes that run in the runner's own Python.
        nvml: Those of them that use pynvml.
    """
    key = _key(light, nvml)
    path = user_cache_dir(os.environ) / f"bundle-{key[:16]}.json"
    cached = _read(path, key)
    if cached is not None:
        return cached
    preload = vendor.preload_modules(light)
    pynvml = vendor.pynvml_source(tuple(nvml)) if nvml else None
    _write(path, {"key": key, "preload": preload, "pynvml": pynvml})
    return preload, pynvml


def _key(light: Sequence[str], nvml: Sequence[str]) -> str:
    """Of all that the result is made from: the sources, pynvml, and our own way to cut it."""
    texts = [source.encode() for source in (*light, "", *nvml)]
    spec = importlib.util.find_spec("pynvml")
    files = [Path(vendor.__file__), *([Path(spec.origin)] if spec and spec.origin else [])]
    digest = hashlib.sha256()
    for text in (*texts, *(file.read_bytes() for file in files)):
        digest.update(b"%d\n%s" % (len(text), text))
    return digest.hexdigest()


def _read(path: Path, key: str) -> tuple[list[str], str | None] | None:
    try:
        cached = json.loads(_read_private(path))
        if cached["key"] == key:
            return list(cached["preload"]), cached["pynvml"]
    except (OSError, ValueError, TypeError, KeyError):
        pass
    return None


def _read_private(path: Path) -> bytes:
    """The file's content; OSError unless only this user can have written it."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as stream:
        for found in (os.fstat(stream.fileno()), path.parent.lstat()):
            if found.st_uid != os.geteuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                raise PermissionError
        return stream.read(_SIZE_LIMIT_BYTES)


def _write(path: Path, parts: dict[str, object]) -> None:
    with contextlib.suppress(OSError):
        private_dir(path.parent)
        write_atomic(path, json.dumps(parts))
        files = sorted(path.parent.glob("bundle-*.json"), key=lambda file: file.stat().st_mtime)
        for old in files[:-FILES_KEPT]:
            old.unlink(missing_ok=True)
