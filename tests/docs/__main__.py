"""Write the generated parts of the documents again: python -m tests.docs.

Between `<!-- table: NAME -->` and `<!-- end -->` stands a table from the code, everything else in a
page is written by hand. `tests/architecture/test_docs.py` fails while a file differs.
"""

import sys

from tests.docs.pages import ROOT, generated


def main() -> int:
    """Write what differs, and say which files."""
    for path, text in generated().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
