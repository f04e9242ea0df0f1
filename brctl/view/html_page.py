"""One self-contained HTML page: no script, nothing fetched, every text escaped and redacted.

Texts come from nodes and logs, so `cell` is the only way in; what is made here is closed markup.
"""

from collections.abc import Iterable, Sequence
from html import escape

from brctl.view.redact import redact
from brctl.view.text import printable

TEXT_LIMIT = 1000
_STYLE = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;
color:#1b1f24;background:#fff}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{border-bottom:1px solid #d0d7de;padding:.3rem .6rem;text-align:left;vertical-align:top}
td{overflow-wrap:anywhere}td:first-child{white-space:nowrap}
svg{width:100%;height:auto}text{font:12px system-ui,sans-serif;fill:#1b1f24}
code{font:13px ui-monospace,monospace}
"""
# Even a text that got through could neither run nor fetch anything.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"


def cell(text: object, limit: int = TEXT_LIMIT) -> str:
    """Any text as it may stand in the page: without secrets, controls and markup."""
    return escape(printable(redact(str(text)), limit))


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table of texts."""
    head = "".join(f"<th>{cell(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{cell(value)}</td>" for value in row) + "</tr>\n" for row in rows
    )
    return f"<table>\n<tr>{head}</tr>\n{body}</table>"


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and values, a line each."""
    rows = "".join(f"<tr><th>{cell(n)}</th><td>{cell(v)}</td></tr>\n" for n, v in pairs)
    return f"<table>\n{rows}</table>"


def heading(text: str) -> str:
    """A heading inside the page."""
    return f"<h2>{cell(text)}</h2>"


def page(title: str, parts: Iterable[str]) -> str:
    """The whole document around parts that were made here."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        f"<title>{cell(title)}</title>\n<style>\n{_STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{cell(title)}</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )
