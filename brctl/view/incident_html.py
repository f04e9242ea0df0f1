"""An incident as one page to send: facts, a picture of the time line, the time line."""

from collections.abc import Mapping
from datetime import datetime

from brctl.model.nodeset import fold
from brctl.model.units import describe_duration, utc_text
from brctl.view.html_page import cell, facts, heading, page, table
from brctl.view.incident import Incident, phases

WIDTH, LEFT, RIGHT, LANE = 960, 110, 40, 26
_COLOURS: Mapping[str, str] = {
    "fault": "#cf222e", "impact": "#bf8700", "diagnosed": "#8250df", "run": "#0969da",
    "failed": "#cf222e", "changed": "#0969da", "recovered": "#1a7f37", "ended": "#cf222e",
}  # fmt: skip
_OTHER = "#57606a"


def incident_html(incident: Incident, now_at: datetime) -> str:
    """The page; it stands alone, so that it can be attached to a ticket."""
    belief = f", confidence {incident.belief}" if incident.belief else ""
    about = facts(
        [
            ("class", f"{incident.about}{belief}"),
            ("state", incident.state),
            ("nodes", fold(incident.nodes) or "none"),
            ("job", incident.job or "none"),
            ("runs", " ".join(incident.runs) or "none"),
            ("phases", phases(incident)),
            ("exported", utc_text(now_at)),
        ]
    )
    rows = [
        (utc_text(m.at), f"+{(m.at - incident.began_at).total_seconds():.0f} s", m.kind, m.text,
         m.source)
        for m in incident.moments
    ]  # fmt: skip
    title = f"Incident {incident.id}: {incident.title}"
    line = table(("at", "since", "what", "text", "source"), rows)
    return page(title, [about, heading("Time line"), picture(incident), line])


def picture(incident: Incident) -> str:
    """Every moment as a dot on the lane of its kind, seconds since the first along the bottom."""
    kinds = list(dict.fromkeys(moment.kind for moment in incident.moments))
    whole_s = (incident.moments[-1].at - incident.began_at).total_seconds()
    bottom = LANE * (len(kinds) + 1)
    parts = [
        f'<text x="0" y="{LANE * (i + 1) + 4}">{cell(kind, 20)}</text>'
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{LANE * (i + 1)}" y2="{LANE * (i + 1)}"'
        ' stroke="#d0d7de"/>'
        for i, kind in enumerate(kinds)
    ]
    for moment in incident.moments:
        since_s = (moment.at - incident.began_at).total_seconds()
        x = LEFT + (WIDTH - LEFT - RIGHT) * (since_s / whole_s if whole_s else 0)
        y = LANE * (kinds.index(moment.kind) + 1)
        parts.append(
            f'<circle cx="{x:.1f}" cy="{y}" r="5" fill="{_COLOURS.get(moment.kind, _OTHER)}">'
            f"<title>+{since_s:.0f} s {cell(moment.text, 200)}</title></circle>"
        )
    parts.append(f'<text x="{LEFT}" y="{bottom + 4}">0</text>')
    if whole_s:
        end = cell(describe_duration(whole_s))
        anchor = f'x="{WIDTH - RIGHT}" y="{bottom + 4}" text-anchor="end"'
        parts.append(f"<text {anchor}>{end}</text>")
    size = f'viewBox="0 0 {WIDTH} {bottom + 16}"'
    return f'<svg {size} role="img" aria-label="time line">\n' + "\n".join(parts) + "\n</svg>"
