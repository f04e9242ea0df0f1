"""Themes: colours that the colour-blind can tell apart (Okabe and Ito 2008), dark, light and 16.

A tone never says what a letter does not also say, so NO_COLOR and a grey printout lose nothing.
"""

from collections.abc import Mapping

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter
from textual.theme import BUILTIN_THEMES, Theme

from brctl.tui.rows.row import Tone

DARK, LIGHT, SIXTEEN = "brctl-dark", "brctl-light", "brctl-16"

_TONES: Mapping[str, Mapping[Tone, str]] = {
    DARK: {
        Tone.PLAIN: "", Tone.DIM: "#8a939b", Tone.HEAD: "bold #c8d3da", Tone.OK: "#8fa7b3",
        Tone.WARN: "bold #e69f00", Tone.CRIT: "bold #ffffff on #b34000",
        Tone.UNKNOWN: "bold #56b4e9", Tone.CORDON: "#cc79a7", Tone.SPARE: "#2fbf95",
    },
    LIGHT: {
        Tone.PLAIN: "", Tone.DIM: "#5b646b", Tone.HEAD: "bold #1d2b33", Tone.OK: "#3f5560",
        Tone.WARN: "bold #7a5200", Tone.CRIT: "bold #ffffff on #a33a00",
        Tone.UNKNOWN: "bold #00588a", Tone.CORDON: "#8a3a68", Tone.SPARE: "#00604a",
    },
    SIXTEEN: {
        Tone.PLAIN: "", Tone.DIM: "dim", Tone.HEAD: "bold", Tone.OK: "",
        Tone.WARN: "bold yellow", Tone.CRIT: "bold white on red", Tone.UNKNOWN: "bold cyan",
        Tone.CORDON: "magenta", Tone.SPARE: "green",
    },
}  # fmt: skip

_STYLES = {
    theme: {tone: Style.parse(text) for tone, text in tones.items()}
    for theme, tones in _TONES.items()
}

THEMES = (
    Theme(
        DARK, primary="#56b4e9", secondary="#2b5f7d", warning="#e69f00", error="#d55e00",
        success="#2fbf95", accent="#e69f00", foreground="#d6dde1", background="#11161a",
        surface="#171d22", panel="#1d252b", dark=True,
    ),
    Theme(
        LIGHT, primary="#00588a", secondary="#6ba3c4", warning="#7a5200", error="#a33a00",
        success="#00604a", accent="#7a5200", foreground="#1d2b33", background="#fbfbf8",
        surface="#f2f3f0", panel="#e8ebe9", dark=False,
    ),
    Theme(
        SIXTEEN, primary="ansi_cyan", secondary="ansi_blue", warning="ansi_yellow",
        error="ansi_red", success="ansi_green", accent="ansi_yellow",
        foreground="ansi_default", background="ansi_default", surface="ansi_default",
        panel="ansi_default", boost="ansi_default", dark=True, ansi=True,
        variables=dict(BUILTIN_THEMES["ansi-dark"].variables),
    ),
)  # fmt: skip


def tone_style(theme: str, tone: Tone) -> Style:
    """The colours of a tone; a theme that is not ours gets the dark ones."""
    return _STYLES.get(theme, _STYLES[DARK])[tone]


_ASCII = str.maketrans(
    {
        "…": "~", "│": "|", "─": "-", "┃": "|", "━": "-", "▌": "|", "▐": "|", "█": "#", "▇": "#",
        "▆": "#", "▅": "#", "▄": "#", "▃": "=", "▂": "-", "▁": "_", "▀": "#", "▔": "-", "▎": "|",
        "▊": "|", "▉": "|", "╸": "-", "╺": "-", "╾": "-", "╼": "-", "╭": "+", "╮": "+", "╰": "+",
        "╯": "+", "┌": "+", "┐": "+", "└": "+", "┘": "+", "├": "+", "┤": "+", "▶": ">", "▼": "v",
        "•": "*", "→": ">", "←": "<", "↑": "^", "↓": "v", "≥": ">", "≤": "<", "·": ".",
    }
)  # fmt: skip


def in_ascii(text: str) -> str:
    """The text in ASCII, as many cells wide as before."""
    from rich.cells import cell_len

    plain = text.translate(_ASCII)
    if plain.isascii():
        return plain
    return "".join(char if char.isascii() else "?" * cell_len(char) for char in plain)


class AsciiFilter(LineFilter):
    """The last word on every line before it leaves: nothing but ASCII passes, whatever drew it."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment if segment.text.isascii() else segment._replace(text=in_ascii(segment.text))
            for segment in segments
        ]
