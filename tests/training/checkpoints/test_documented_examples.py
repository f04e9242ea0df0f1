"""What people paste from the page is what the tests of the frameworks run."""

import re
from pathlib import Path

import brctl

PAGE = (Path(brctl.__file__).parent / "docs" / "jobs.md").read_text()
SCRIPTS = (Path(__file__).parent / "example_scripts.py").read_text()


def bare(code: str) -> str:
    """Without comments, and without what only a test says."""
    lines = (line.split("  #")[0] for line in code.splitlines())
    return re.sub(r"\s", "", "".join(lines)).replace(",settings=settings", "")


def test_every_documented_line_of_a_framework_is_run_by_a_test() -> None:
    section = PAGE.split("The lines for each framework")[1].split("The callback for Hugging Face")[
        0
    ]
    blocks = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    lines = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(lines) > 20
    assert [line for line in lines if bare(line) not in bare(SCRIPTS)] == []
