"""A plot of how many times as long as msgen other codecs take, as SVG.

One panel a message, one bar a codec, on a logarithmic scale whose line at 1 is msgen. Colours follow
the reader's light or dark mode.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from math import log10

_STYLE = """\
text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328; }
.title { font-weight: 600; }
.quiet { font-size: 11px; fill: #59636e; }
.grid { stroke: #d1d9e0; }
.one { stroke: #1f2328; stroke-width: 1.5; }
.bar { fill: #2f7ed8; }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc; }
.quiet { fill: #9198a1; }
.grid { stroke: #3d444d; }
.one { stroke: #f0f6fc; }
.bar { fill: #58a6ff; }
}"""

_PANEL = 390, 186
"""Width and height of a panel, which stand in two columns."""
_LABELS = 116
"""Width of the codecs' names."""
_SCALE = 215
"""Width from the least to the most of the scale; the rest is for the figures."""
_ROW = 23
_BAR = 14
_TOP = 34


def draw(panels: Mapping[str, Mapping[str, float]], caption: str) -> str:
    """Return the plot.

    Args:
        panels: by message, and then by codec, how many times as long as msgen it takes.
        caption: says what is measured.
    """
    values = [value for bars in panels.values() for value in bars.values()]
    decades = max(1, *(int(log10(value)) + 1 for value in values))
    least = min(0.0, *(log10(value) for value in values))
    parts = []
    for index, (title, bars) in enumerate(panels.items()):
        left, top = index % 2 * _PANEL[0], index // 2 * _PANEL[1] + 28
        body = "\n".join(_panel(title, bars, least, decades))
        parts.append(f'<g transform="translate({left} {top})">\n{body}\n</g>')
    width, height = 2 * _PANEL[0], (len(panels) + 1) // 2 * _PANEL[1] + 28
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(caption)}</title>",
            f"<style>\n{_STYLE}\n</style>",
            f'<text class="quiet" x="4" y="16">{escape(caption)}</text>',
            *parts,
            "</svg>\n",
        ]
    )


def _panel(
    title: str, bars: Mapping[str, float], least: float, decades: int
) -> list[str]:
    def across(exponent: float) -> float:
        return round(_LABELS + (exponent - least) / (decades - least) * _SCALE, 1)

    bottom = _TOP + len(bars) * _ROW
    lines = [f'<text class="title" x="4" y="{_TOP - 12}">{escape(title)}</text>']
    for exponent in range(decades + 1):
        x, kind = across(exponent), "grid" if exponent else "one"
        label = f"{10**exponent}&#215;" if exponent else "msgen"
        lines += [
            f'<line class="{kind}" x1="{x}" x2="{x}" y1="{_TOP - 4}" y2="{bottom}"/>',
            f'<text class="quiet" x="{x}" y="{bottom + 15}" text-anchor="middle">{label}</text>',
        ]
    one = across(0)
    for row, (codec, value) in enumerate(bars.items()):
        y = _TOP + row * _ROW
        start, end = sorted((one, across(log10(value))))
        lines += [
            f'<text x="{_LABELS - 10}" y="{y + 12}" text-anchor="end">{escape(codec)}</text>',
            f'<rect class="bar" x="{start}" y="{y}" width="{end - start:.1f}" height="{_BAR}" rx="2"/>',
            f'<text x="{max(end, one) + 6:.1f}" y="{y + 12}">{times(value)}&#215;</text>',
        ]
    return lines


def times(value: float) -> str:
    """Spell a ratio: two figures, or all before the point."""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"
