"""Read a table that gives nodes a label, such as which leaf switch they hang on."""

import csv
from pathlib import Path

from brctl.library.trusted_files import read_whole
from brctl.model.errors import ConfigError, did_you_mean

SIZE_LIMIT_BYTES = 16 << 20


def load_group_file(path: Path, key: str, value: str) -> list[tuple[int, str, str]]:
    """Line, node and label of every row of a CSV file with a header line.

    Raises:
        ConfigError: The file cannot be read, is too large, or lacks a column.
    """
    raw = read_whole(path, SIZE_LIMIT_BYTES)
    try:
        rows = csv.DictReader(raw.decode("utf-8").splitlines(), strict=True)
        columns = rows.fieldnames or ()
        for column in (key, value):
            if column not in columns:
                raise ConfigError.at(
                    path, 1, f"no column {column!r}; {did_you_mean(column, columns)}"
                )
        return [
            (number, (row[key] or "").strip(), (row[value] or "").strip())
            for number, row in enumerate(rows, start=2)
        ]
    except (UnicodeDecodeError, csv.Error) as exc:
        raise ConfigError(f"{path}: not a CSV file: {exc}") from exc
