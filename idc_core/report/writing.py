"""The report as one web page: text, pictures, charts and the library that draws them are all in the file."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from idc_core.base.progress import Progress, report
from idc_core.errors import CancelledError, IdcError
from idc_core.figures.web import allowed_script, packed_library
from idc_core.figures.wording import count, percent, plural, signed
from idc_core.report.bounds import LONGEST_NOTE, cut
from idc_core.report.charts import Chart, grid_chart, histogram_chart
from idc_core.report.content import Report
from idc_core.report.making import make_report
from idc_core.report.material import Material
from idc_core.report.neuron_cards import Best, drawn_cards
from idc_core.store.notes import Note

_FOLDER = Path(__file__).parent / "page"

_MOST_CLUSTERS = 5
"""Clusters of a neuron whose numbers the table lists."""


@dataclass(frozen=True)
class ReportFiles:
    """The two files of a report: a web page and JSON text, which `report.schema.json` describes."""

    page: bytes
    json: bytes


def make_files(
    material: Material,
    *,
    date: str,
    command: str = "",
    notes: Sequence[Note] = (),
    hypotheses: Best | None = None,
    on_progress: Progress | None = None,
) -> ReportFiles:
    """Make the files of a report; arguments and errors as `make_report`, `hypotheses` as `make_cards`."""
    names = {int(note.place["neuron"]): note.text for note in reversed(notes) if note.names and "neuron" in note.place}
    said = [note for note in notes if not note.names]
    content = make_report(material, date=date, command=command, notes=said, on_progress=on_progress)
    report(on_progress, 0, 1, "drawing the charts of the report")
    cards = _cards(material, names, hypotheses, on_progress)
    page = _write_page(content, [grid_chart(material, on_progress), histogram_chart(material)], cards)
    return ReportFiles(page, content.to_json().encode("utf-8", errors="replace"))


def _cards(
    material: Material, names: Mapping[int, str], hypotheses: Best | None, on_progress: Progress | None
) -> list[str]:
    """Draw the cards of the important neurons; of a network that what they need cannot pass through, why not."""
    try:
        return drawn_cards(material, names, hypotheses, on_progress)
    except CancelledError:
        raise
    except IdcError as error:
        return [f"<p>{escape(str(error))}</p>"]


def _write_page(content: Report, charts: Sequence[Chart], cards: Sequence[str] = ()) -> bytes:
    """Write a report as a web page that asks for nothing else; equal reports give equal bytes.

    Texts are escaped by the template. Should one get through, the page's own policy lets only its two scripts run, and
    nothing be loaded.
    """
    environment = Environment(
        loader=FileSystemLoader(_FOLDER), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters |= {
        "percent": percent,
        "count": count,
        "plural": plural,
        "number": _number,
        "cut": cut,
        "numbers": lambda values: _joined(map(_number, values)),
        "counts": lambda values: _joined(map(count, values)),
    }
    figure = environment.get_template("figure.html")
    script, style = ((_FOLDER / f"report.{kind}").read_text(encoding="utf-8") for kind in ("js", "css"))
    library, packed = packed_library()
    page = environment.get_template("report.html").render(
        report=content,
        longest_note=LONGEST_NOTE,
        charts={drawn.name: drawn for drawn in charts},
        cards=[Markup(card) for card in cards],
        figure=lambda chart: Markup(figure.render(chart=chart)),
        style=Markup(style),
        script=Markup(script),
        scripts=Markup(f"{allowed_script(library)} {allowed_script(script)}"),
        plotly=packed,
    )
    return page.encode("utf-8", errors="replace")


def _number(value: float) -> str:
    """Write a number with three digits, whole ones in full."""
    return f"{value:,.0f}".replace("-", "\u2212") if value == round(value) else signed(value, ".3g")


def _joined(values: Iterable[str]) -> str:
    """Join the numbers of a neuron's clusters, not all of many."""
    shown = list(itertools.islice(values, _MOST_CLUSTERS + 1))
    return " / ".join([*shown[:_MOST_CLUSTERS], *("…" for _ in shown[_MOST_CLUSTERS:])])
