"""How the code is built, in numbers: `python -m tests.bench.structure [DIR ...]`, side by side.

Each DIR is a checkout, today's or an older one; nothing of it is imported. Lines are those of the
files; a function's length counts its signature and docstring too. A private helper is a function
or method whose name begins with one underscore; used once means one mention in its own module. A
duplicated block is a run of six lines or more, imports and blank lines left out, that stands word
for word elsewhere too; the first place is not counted.
"""

import argparse
import ast
import statistics
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK_LINES = 6
Function = ast.FunctionDef | ast.AsyncFunctionDef


def measure(root: Path) -> Mapping[str, str]:
    """The numbers of one checkout, by what they count."""
    files = {path: path.read_text(encoding="utf-8") for path in sources(root / "brctl")}
    trees = [ast.parse(text) for text in files.values()]
    lengths = sorted(length_of(f) for tree in trees for f in functions(tree))
    helpers = [count for tree in trees for count in mentions_of_helpers(tree)]
    blocks = list(duplicated_blocks([code_lines(text) for text in files.values()]))
    tests = [ast.parse(path.read_text(encoding="utf-8")) for path in sources(root / "tests")]
    return {
        "lines in brctl": f"{sum(text.count(chr(10)) for text in files.values()):,}",
        "lines in checks": f"{lines_below(root / 'checks'):,}",
        "lines in tests": f"{lines_below(root / 'tests'):,}",
        "modules in brctl": f"{len(files):,}",
        "folders of brctl": f"{len({path.parent for path in files})}",
        **fullest_folders(root, files),
        "functions": f"{len(lengths):,}",
        "lines a function: median / p90 / max": (
            f"{statistics.median_low(lengths)} / {share(lengths, 0.9)} / {max(lengths)}"
        ),
        "private helpers": f"{len(helpers):,}",
        "  used once": f"{helpers.count(1):,}",
        f"duplicated blocks of {BLOCK_LINES}+ lines": f"{len(blocks)}",
        "  lines in them": f"{sum(blocks):,}",
        "test functions": f"{sum(map(count_tests, tests)):,}",
    }  # fmt: skip


def sources(folder: Path) -> list[Path]:
    """The Python files below a folder that people wrote."""
    return sorted(path for path in folder.rglob("*.py") if "_shipped" not in path.parts)


def lines_below(folder: Path) -> int:
    """Lines of all Python files below a folder."""
    return sum(path.read_text(encoding="utf-8").count("\n") for path in sources(folder))


def fullest_folders(root: Path, files: Iterable[Path]) -> Mapping[str, str]:
    """Most modules directly in one folder; the commands, one word a file, are counted beside."""
    counts = modules_a_folder(root, files)
    named = {name: count for name, count in counts.items() if name != "cli/commands"}
    fullest, most = max(named.items(), key=lambda item: item[1])
    return {
        "most modules in a folder": f"{most} ({fullest})",
        "  in cli/commands": str(counts.get("cli/commands", "-")),
    }


def modules_a_folder(root: Path, files: Iterable[Path]) -> Mapping[str, int]:
    """Modules directly in each folder of brctl, `__init__` not counted."""
    folders = (path.parent for path in files if path.name != "__init__.py")
    return Counter(str(folder.relative_to(root / "brctl")) for folder in folders)


def functions(tree: ast.AST) -> list[Function]:
    """Every function and method, nested ones too."""
    return [node for node in ast.walk(tree) if isinstance(node, Function)]


def count_tests(tree: ast.AST) -> int:
    """Test functions; a parametrised one counts once."""
    return sum(function.name.startswith("test_") for function in functions(tree))


def length_of(function: Function) -> int:
    """Lines from `def` to the end."""
    return (function.end_lineno or function.lineno) - function.lineno + 1


def mentions_of_helpers(tree: ast.AST) -> list[int]:
    """How often each private helper of a module is mentioned in it, its definition left out."""
    names = {
        f.name for f in functions(tree) if f.name.startswith("_") and not f.name.startswith("__")
    }
    mentioned = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return [mentioned[name] for name in names]


def code_lines(text: str) -> list[str]:
    """A module's lines without space around them; no blank lines, comments and imports."""
    imports = {
        number
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = (line.strip() for n, line in enumerate(text.splitlines(), start=1) if n not in imports)
    return [line for line in lines if line and not line.startswith("#")]


def duplicated_blocks(modules: Sequence[Sequence[str]]) -> Iterator[int]:
    """The length of every run of lines that stands elsewhere before."""
    observed: set[int] = set()
    for lines in modules:
        run = 0
        for start in range(len(lines) - BLOCK_LINES + 1):
            window = hash(tuple(lines[start : start + BLOCK_LINES]))
            if window in observed:
                run = run + 1 if run else BLOCK_LINES
            elif run:
                yield run
                run = 0
            observed.add(window)
        if run:
            yield run


def share(ordered: Sequence[int], part: float) -> int:
    """The value that a part of all does not exceed."""
    return ordered[min(len(ordered) - 1, int(part * len(ordered)))]


def checkout(text: str) -> Path:
    """A folder that holds brctl, checks and tests."""
    root = Path(text).resolve()
    missing = [name for name in ("brctl", "checks", "tests") if not (root / name).is_dir()]
    if missing:
        raise argparse.ArgumentTypeError(f"{text}: no checkout of brctl, {missing[0]}/ is missing")
    return root


def main(arguments: Sequence[str]) -> None:
    """Print one column a checkout."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.structure",
        description="Say in numbers how the code is built, checkouts side by side.",
    )
    parser.add_argument("roots", nargs="*", type=checkout, metavar="DIR", help="default this one")
    roots = parser.parse_args(arguments).roots or [ROOT]
    columns = [measure(root) for root in roots]
    print(f"{'':38}" + "".join(f"{root.name:>26}" for root in roots))
    for name in columns[0]:
        print(f"{name:38}" + "".join(f"{column[name]:>26}" for column in columns))


if __name__ == "__main__":
    main(sys.argv[1:])
