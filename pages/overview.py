"""Overview: the result at a glance, and where to look next."""

from studio.jobs.results import View
from studio.overview import result as overview
from studio.overview import worst_tests
from studio.shell.frame import current_result
from studio.shell.pages import PageEntry
from studio.widgets import report
from studio.widgets.layout import explain

PAGE = PageEntry(
    "Overview",
    ":material/home:",
    "What do these tests not cover?",
    "The result for this setup at a glance, and where to look next.",
    section="Start",
    place=10,
    setup="snapshot",
)

_shown = current_result()
_view = _shown if isinstance(_shown, View) else None
overview.draw(_shown)
if _view is not None:
    overview.draw_pinned(_view)
worst_tests.draw(_shown)
report.offer(_shown.setup, _view)
explain(
    "IDC Studio shows which behaviour of a neural network its tests do not cover. The important neurons of a layer are "
    "those with the largest relevance, summed over the network's training inputs. "
    "The activations of each over the training inputs are split into clusters. A cell is one cluster of every "
    "important neuron. IDC is the share of cells that contain a test. The pages under **Explore** show every step.",
    "Source: Gerasimou, Eniser, Sen, Cakan, Importance-Driven Deep Learning System Testing, ICSE 2020.",
)
