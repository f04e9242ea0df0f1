"""YAML is data: odd files are refused with file and line, and words stay words."""

import pytest

from brctl.library.schema import Section
from brctl.library.shipped import shipped_dir
from brctl.library.strict_yaml import SIZE_LIMIT_BYTES, load_document, parse_document
from brctl.model.errors import ConfigError


def test_only_json_like_scalars_are_converted() -> None:
    """`no`, `0012` and `12:30` are node names and times, not booleans, octals and minutes."""
    document = parse_document(b"a: [no, on, 0012, 12:30, 0x1f, 1e3, 1, -2, 1.5, true, null]", "f")
    expected = ["no", "on", "0012", "12:30", "0x1f", "1e3", 1, -2, 1.5, True, None]
    assert document.data == {"a": expected}


def test_every_value_knows_its_line() -> None:
    document = parse_document(b"steps:\n  - id: a\n  - id: b\n    uses: x\n", "f")
    assert document.line("steps", 1, "uses") == 4
    assert document.line("steps", 1, "missing") == 3


@pytest.mark.parametrize(
    ("raw", "line", "problem"),
    [
        (b"a: 1\na: 2\n", 2, "duplicate key 'a'; first on line 1"),
        (b"a:\n\tb: 1\n", 2, "a tab cannot indent"),
        (b"a: 1\nb: !!python/object/apply:os.system [id]\n", 2, "is not allowed"),
        (b"a: !!binary aGk=\n", 1, "is not allowed"),
        (b"[" * 5000, 1, "nested deeper"),
        (b"a: &x [*x]\n", 1, "nested deeper"),
        (b"a: \xff\n", 1, "not UTF-8"),
        (b"a: b: c\n", 1, "mapping values"),
        (b"a: 1\n---\nb: 2\n", 1, "holds 2 YAML documents"),
        (b"? [a]\n: 1\n", 1, "a key must be plain text"),
        (b"a: \x00\n", 1, "is not allowed"),
        (b"x" * (SIZE_LIMIT_BYTES + 1), 1, "larger than 1 MiB"),
        (b"<<: {a: 1}\nb: *nowhere\n", 2, "undefined alias"),
    ],
)
def test_junk_is_one_error_with_file_and_line(raw: bytes, line: int, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(raw, "x.yaml")
    assert str(caught.value).startswith(f"x.yaml:{line}: ")
    assert problem in str(caught.value)


def test_aliases_that_multiply_are_refused() -> None:
    """Nine lines can mean a billion values; they are counted, not built."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(ConfigError, match="expands to more than"):
        parse_document("\n".join(lines).encode(), "bomb.yaml")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nam: x", "f:1: unknown key 'nam'; did you mean 'name'?"),
        ("name: 3", "f:1: 'name' must be text, not a whole number"),
        ("name: x\nlevel: high", "f:2: 'level' must be a whole number, not text"),
        ("name: x\nlevel: true", "f:2: 'level' must be a whole number, not true or false"),
        ("- a", "f:1: the file must be a mapping, not a list"),
    ],
)
def test_schema_errors_name_line_key_and_nearest_word(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _read(parse_document(text.encode(), "f").data, text)
    assert str(caught.value) == problem


def _read(data: object, text: str) -> None:
    top = Section(parse_document(text.encode(), "f"), data)
    top.allow(("name", "level"))
    top.value("name", str)
    top.value("level", int, 1)


def test_the_fast_parser_reads_shipped_files_as_the_careful_one_does() -> None:
    """Same values, same lines: libyaml is only let near files that this test has seen."""
    for path in (*shipped_dir("checks").rglob("*.yaml"), *shipped_dir("playbooks").rglob("*.yaml")):
        quick, careful = load_document(path, shipped=True), load_document(path)
        assert (quick.data, quick.lines) == (careful.data, careful.lines), path


@pytest.mark.parametrize("value", ["9" * 5000, "9" * 30, "!!int abc", "!!float abc"])
def test_a_number_that_is_none_is_named_with_its_line(value: str) -> None:
    """It ended in a traceback."""
    with pytest.raises(ConfigError, match=r"f:2: .* is not a number that makes sense"):
        parse_document(f"a: 1\nb: {value}\n".encode(), "f")
