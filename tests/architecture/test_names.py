"""One class name, one meaning: decision 0170."""

import ast
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "brctl"

PUBLIC = {"Settings"}
"""What users import from brctl.training.step_checkpoints keeps its name."""


def test_a_class_name_stands_for_one_thing() -> None:
    """Classes within a class, such as a widget's messages, are named within it."""
    places = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert places["Controller"], "no class was found at all"
    doubled = {name: at for name, at in places.items() if len(at) > 1 and name not in PUBLIC}
    assert doubled == {}
