"""Reads the shipped tables of the word model: an `.npz` without pickles, bounded, on demand."""

from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import SupportsFloat

from brctl.evidence.logs.words.word_model import WordModel
from brctl.model.fault import FaultClass

MODEL_FILE = Path(__file__).with_name("log_model.npz")
SIZE_LIMIT = 1 << 20
"""The shipped file is an eighth of this; a larger one is not ours."""


@cache
def shipped_model() -> WordModel:
    """The model that comes with brctl.

    Raises:
        ValueError: The file is too large or its tables do not fit this version.
        OSError: The installation lacks it.
    """
    return read_model(MODEL_FILE)


def read_model(path: Path) -> WordModel:
    """The tables of one file.

    Raises:
        ValueError: It is too large, holds objects, or its tables do not fit this version.
        OSError: It cannot be read.
    """
    import zipfile

    # It costs a tenth of a second, and a log that a rule explains needs no model.
    import numpy as np

    if path.stat().st_size > SIZE_LIMIT:
        raise ValueError(f"{path}: larger than {SIZE_LIMIT} bytes, not a model of this version")
    try:
        with zipfile.ZipFile(path) as archive:
            if sum(item.file_size for item in archive.infolist()) > SIZE_LIMIT:
                raise ValueError(f"{path}: unpacks to more than {SIZE_LIMIT} bytes")
        with np.load(path, allow_pickle=False) as tables:
            return WordModel(
                classes=tuple(FaultClass(str(name)) for name in tables["classes"]),
                weights=tables["weights"].astype(np.int8).tobytes(),
                scale=float(tables["scale"]),
                bias=_numbers(tables["bias"]),
                named=_numbers(tables["named"]),
                flags=_numbers(tables["flags"]),
                facts=tuple(_numbers(row) for row in tables["facts"]),
                surprise=tables["surprise"].astype(np.uint8).tobytes(),
            )
    except (KeyError, zipfile.BadZipFile) as exc:
        raise ValueError(f"{path}: not a word model: {exc}") from exc


def _numbers(row: Iterable[SupportsFloat]) -> tuple[float, ...]:
    return tuple(float(value) for value in row)
