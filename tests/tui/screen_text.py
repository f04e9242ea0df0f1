"""A screen as plain text: what tests compare, and what diffs well in review."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.app import App


def screen_text(app: "App[None]") -> str:
    """The visible screen, line by line, without colours and trailing blanks."""
    # Textual offers its screen as SVG only; the compositor's lines are what it draws.
    width, height = app.size
    filters = app.get_line_filters()
    lines = []
    for strip in app.screen._compositor.render_strips()[:height]:
        for line_filter in filters:
            strip = strip.apply_filter(line_filter, app.screen.background_colors[1])
        lines.append(strip.crop(0, width).text.rstrip())
    return "\n".join(lines)
