"""The tables of docs/DESIGN.md from the code that they describe, and the same on one page of HTML.

``python -m docs.pictures.design`` writes the tables anew; with the name of a file it writes the page there, too.
"""

from __future__ import annotations

import html
import re
import sys
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import plotly.graph_objects as go

from idc_core.figures import palette
from idc_core.figures.colourings import categories
from idc_core.figures.style import finish
from idc_core.perturbation import ATTACKS, CORRUPTIONS, TEXT_CHANGES, TRANSFORMS

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "DESIGN.md"
THEMES = (False, True)

Rows = list[Sequence[str]]


def _on(ground: str, colour: str) -> str:
    return f"{colour} {palette.contrast(colour, ground):.1f}"


def _both(of: Callable[[bool], str]) -> list[str]:
    return [_on(palette.palette(dark).ground, of(dark)) for dark in THEMES]


def colours() -> Rows:
    """List what every page is made of."""
    uses = {
        "ground": "background, zero of every scale",
        "ink": "text, outlines",
        "muted": "axes, secondary text",
        "line": "thin lines",
        "accent": "the one accent: links, what is selected",
        "error": "misclassified; frames of what is selected in a chart",
        "tests": "the original tests",
    }
    return [
        ("name", "light", "dark", "for"),
        *(
            (name, *_both(lambda dark, name=name: getattr(palette.palette(dark), name)), use)
            for name, use in uses.items()
        ),
    ]


def scales() -> Rows:
    """List the scales, from nothing on."""
    rows: Rows = [("scale", "light", "dark")]
    written = [", ".join(colour for _, colour in palette.palette(dark).scale) for dark in THEMES]
    rows.append(("counts, from nothing to many", *written))
    for name, scheme in palette.SCHEMES.items():
        written = [", ".join(colour for _, colour in scheme.scale(dark)) for dark in THEMES]
        rows.append((f"relevance, {name}: {scheme.against} against, {scheme.supports} for", *written))
    return rows


def states() -> Rows:
    """List the states of a cell, each a fill and a mark."""
    light, dark = (categories("covered", palette.palette(theme), reach=True) for theme in THEMES)
    rows: Rows = [("state", "light", "dark")]
    for one, other in zip(light, dark, strict=True):
        rows.append((one["label"], str(one["color"]), str(other["color"])))
    return [*rows, ("\u00d7 reached only by misclassified tests", "mark on the fill", "mark on the fill")]


def suites() -> Rows:
    """List how every kind of suite is drawn."""
    rows: Rows = [("suite", "light", "dark", "dash", "mark", "outlined")]
    for kind in ("original", "noise", "guided", *TRANSFORMS, *TEXT_CHANGES, *CORRUPTIONS, *ATTACKS, "own"):
        style = palette.suite_style(kind)
        drawn = _both(style.colour)
        rows.append((kind, *drawn, style.dash, style.marker, "yes" if style.outline else ""))
    return rows


def classes() -> Rows:
    """List the colours of classes, on which dark text stands."""
    rows: Rows = [("class", "fill", "contrast of the text on it")]
    for number, fill in enumerate(palette.CLASSES):
        rows.append((str(number), fill, f"{palette.contrast(palette.ON_FILL, fill):.1f}"))
    return rows


def sizes() -> Rows:
    """List the sizes of type, in pixels."""
    theme = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))["theme"]
    base, headings = theme["baseFontSize"], [float(size[:-3]) for size in theme["headingFontSizes"]]
    figure = finish(go.Figure(layout={"xaxis": {}}), "Title", palette.LIGHT, height=300)
    axis = figure.layout.xaxis
    presented = re.search(r"font-size: (\d+)px", (ROOT / "assets" / "styles" / "presenting.css").read_text("utf-8"))
    assert presented is not None
    return [
        ("what", "pixels"),
        ("text", f"{base}"),
        ("text in front of a room", presented[1]),
        ("question of the page", f"{base * headings[0]:.4g}"),
        ("heading within a page", f"{base * headings[1]:.4g}"),
        ("caption", f"{0.875 * base:.3g}"),
        ("title of a chart", f"{figure.layout.title.font.size}"),
        ("legend", f"{figure.layout.font.size}"),
        ("title of an axis", f"{axis.title.font.size}"),
        ("ticks, and the least in a chart", f"{axis.tickfont.size}"),
    ]


_STYLE = """
body { margin: 0; display: grid; grid-template-columns: 1fr 1fr; font: 15px "Source Sans 3", "Segoe UI", sans-serif; }
section { padding: 1.5rem; }
table { border-collapse: collapse; font-size: 13px; }
td, th { text-align: left; padding: 2px 10px 2px 0; }
i { display: inline-block; width: 1.1em; height: 1.1em; vertical-align: -0.2em; outline: 1px solid #808080; }
.scale { height: 16px; outline: 1px solid #808080; }
"""

TABLES: dict[str, Callable[[], Rows]] = {
    "sizes": sizes,
    "colours": colours,
    "scales": scales,
    "states": states,
    "suites": suites,
    "classes": classes,
}


def markdown(rows: Rows) -> str:
    """Write a table."""
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def filled(text: str) -> str:
    """Return a document with its tables as they are now: each lies between two comments."""
    for name, make in TABLES.items():
        begin, end = f"<!-- table: {name} -->\n", "<!-- end -->"
        before, _, rest = text.partition(begin)
        text = f"{before}{begin}{markdown(make())}\n{end}{rest.partition(end)[2]}"
    return text


def _cell(text: str) -> str:
    """Write a cell, with a swatch for every colour in it."""
    shown = html.escape(text)
    return re.sub(r"(#[0-9a-f]{6})", r'<i style="background:\1"></i> <code>\1</code>', shown)


def page() -> str:
    """Return all tables with swatches on one page, on both grounds."""
    parts = []
    for dark in THEMES:
        colours_of = palette.palette(dark)
        parts.append(f'<section style="background:{colours_of.ground};color:{colours_of.ink}">')
        parts.append(f"<h1>{'Dark' if dark else 'Light'}</h1>")
        for name, make in TABLES.items():
            head, *rows = make()
            body = "".join("<tr>" + "".join(f"<td>{_cell(one)}</td>" for one in row) + "</tr>" for row in rows)
            titles = "".join(f"<th>{html.escape(one)}</th>" for one in head)
            parts.append(f"<h2>{name.capitalize()}</h2><table><tr>{titles}</tr>{body}</table>")
        for scale in (colours_of.scale, *(scheme.scale(dark) for scheme in palette.SCHEMES.values())):
            stops = ", ".join(colour for _, colour in scale)
            parts.append(f'<p class="scale" style="background:linear-gradient(90deg, {stops})"></p>')
        parts.append("</section>")
    head = f'<meta charset="utf-8"><title>IDC Studio: design</title><style>{_STYLE}</style>'
    return f'<!DOCTYPE html><html lang="en">{head}{"".join(parts)}</html>'


def main(arguments: Sequence[str]) -> None:
    """Write the document's tables, and the page where a file is named."""
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    for file in arguments:
        Path(file).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
