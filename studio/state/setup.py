"""The setup: network, tests, layer, number of neurons, clusters, and which of the tests are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import streamlit as st

from idc_core.analysis.filtering import ALL_CONFIDENCES, CORRECT, SUSPECTS, Conditions
from idc_core.base import ranges
from idc_core.base.parameters import Parameter
from idc_core.coverage.idc_settings import CONTROLS
from idc_core.errors import DataError
from idc_core.lrp.layer_parts import split_layer
from studio.state import address, allowed, visitor
from studio.state.selection import change_setup
from studio.text import quoted

if TYPE_CHECKING:
    from idc_core.datasets import DatasetEntry
    from idc_core.models import ModelEntry

MOST_NEURONS = 12

_M = replace(ranges.M, high=MOST_NEURONS)
"""The number of important neurons, as far as the studio shows it."""

_CONFIDENCE = Parameter("confidence", "Confidence", "Softmax probability of the predicted class.", 1.0, 0.0, 1.0)

SAVED = "kept-"
"""Beginning of the names of saved suites, told without loading any."""

FILTER = ("classes", "predicted", "answers", "confidence", "within", "without")
"""Parts of the setup that say which of the tests are looked at."""

ANSWERS = {"": "all", "right": CORRECT[True], "wrong": CORRECT[False]}
"""Which predictions of the network are looked at."""

WITHOUT = {reason.name.lower(): reason for reason in SUSPECTS}
"""Kinds of suspects that can be left out, by their names in the address."""

_ARRIVED, _NOT_FOUND = "setup-arrived", "setup-not-found"
"""In the session: parts of the setup that came with an address, and the page and sentences of those not found."""

_T = TypeVar("_T")


def _with_options(setup: type[_T]) -> type[_T]:
    """Add a part for every option of IDC that has a control, before the parts that have a default."""
    own = setup.__annotations__
    needed = {name: kind for name, kind in own.items() if not hasattr(setup, name)}
    for name, control in CONTROLS.items():
        setattr(setup, name, control.default)
    setup.__annotations__ = needed | dict.fromkeys(CONTROLS, "str") | own
    return setup


@dataclass(frozen=True)
@_with_options
class Setup:
    """What the person chose.

    The layer may have fewer than `m` neurons. Options of IDC (`CONTROLS`) are parts by their names in the address, and
    hold names of their choices. The names in `FILTER` are the filter of the tests: true and predicted classes, a key of
    `ANSWERS`, a range such as ``0.5to0.9``, a cell such as ``2-1-0``, and keys of `WITHOUT`; each is empty where all
    tests pass.
    """

    model: str
    data: str
    layer: str
    m: int
    classes: tuple[str, ...]
    predicted: tuple[str, ...] = ()
    answers: str = ""
    confidence: str = ""
    within: str = ""
    without: tuple[str, ...] = ()

    @property
    def options(self) -> dict[str, str]:
        """What is chosen of the options of IDC, by name as the address writes it."""
        return {name: getattr(self, name) for name in CONTROLS}

    @property
    def unusual(self) -> dict[str, str]:
        """The options that are not as the studio opens."""
        return {name: text for name, text in self.options.items() if text != CONTROLS[name].default}

    @property
    def texts(self) -> dict[str, str]:
        """Every part as the address writes it; empty where it is what the studio opens on."""
        from idc_core.models import MODELS

        entry = MODELS[self.model]
        usual = {**vars(DEFAULT), "data": entry.dataset, "layer": entry.default_layer}
        texts = {name: value if isinstance(value, tuple) else (str(value),) for name, value in vars(self).items()}
        return {
            name: "" if getattr(self, name) == usual[name] else address.joined(text) for name, text in texts.items()
        }

    @property
    def line(self) -> str:
        """The setup in one line."""
        from idc_core.models import MODELS

        line = setup_line(MODELS[self.model].label.partition(" on ")[0], self, self.m)
        return f"{line} · tests {self.filter_words}" if self.filter_words else line

    @property
    def conditions(self) -> Conditions:
        """The filter of the tests."""
        return Conditions(
            self.classes,
            self.predicted,
            {"": None, "right": True, "wrong": False}[self.answers],
            _confidence_range(self.confidence) or ALL_CONFIDENCES,
            tuple(int(part) for part in self.within.split("-") if part),
            tuple(WITHOUT[name] for name in self.without),
        )

    @property
    def filter_words(self) -> str:
        """The filter as it is said behind "tests"; empty where all tests pass."""
        return self.conditions.words


DEFAULT = Setup("lenet5-digits", "digits", "fc2", 6, ())
"""What the studio opens on."""


def default_setup(model: str) -> Setup:
    """Return the setup that a network opens on."""
    from idc_core.models import MODELS

    entry = MODELS[model]
    return Setup(model, entry.dataset, entry.default_layer, DEFAULT.m, ())


def setup_line(network: str, setup: Setup, m: int) -> str:
    """Write a setup in one line, what is as usual left out."""
    parts = [network, _tests_name(setup.data), f"layer {setup.layer}", f"m = {m}"]
    return " · ".join([*parts, *(CONTROLS[name].line.format(text) for name, text in setup.unusual.items())])


def _tests_name(data: str) -> str:
    """Return what tests are called in a line: a data set's name, a saved suite's label."""
    if not data.startswith(SAVED):
        return data
    from idc_core.datasets import DATASETS

    return DATASETS[data].label


def untouched() -> bool:
    """Whether everything is as the studio opens, told without loading the registries."""
    return not any(address.read(name) for name in vars(DEFAULT))


def parse(texts: Mapping[str, str]) -> Setup:
    """Read a setup from what an address says: the texts of every part, by its name in `Setup`.

    What is missing, or not there to be chosen, is as the studio opens. Networks and data sets are known by their names
    and by their labels.
    """
    from idc_core.clustering.methods import CLUSTERINGS
    from idc_core.datasets import DATASETS

    seen = visitor.models()
    model = _find(texts.get("model", ""), {name: entry.label for name, entry in seen.items()}, DEFAULT.model)
    entry = seen[model]
    fitting = fitting_data(entry)
    names = entry.layers
    layer = texts.get("layer", "")
    m = _M.said(texts.get("m", ""))
    data = _find(texts.get("data", ""), {name: DATASETS[name].label for name in fitting}, entry.dataset)
    known = DATASETS[data].class_names
    predictable = DATASETS[entry.dataset].class_names if known else ()
    answers, cell = texts.get("answers", ""), texts.get("within", "")
    options: dict[str, Any] = {
        name: texts[name] if texts.get(name) in control.choices() else control.default
        for name, control in CONTROLS.items()
    }
    if not CLUSTERINGS[options["clustering"]].takes_k:
        options["k"] = CONTROLS["k"].default
    return Setup(
        model=model,
        data=data,
        layer=layer if layer in names or split_layer(layer)[0] in names else entry.default_layer,
        m=min(DEFAULT.m if m is None else int(m), most_neurons()),
        classes=_named(texts, "classes", known),
        **options,
        predicted=_named(texts, "predicted", predictable),
        answers=answers if answers in ANSWERS and known and known == predictable else "",
        confidence=texts.get("confidence", "") if known and _confidence_range(texts.get("confidence", "")) else "",
        within=cell if _is_cell(cell) else "",
        without=_named(texts, "without", tuple(WITHOUT) if known and known == predictable else ()),
    )


def _named(texts: Mapping[str, str], part: str, known: Sequence[str]) -> tuple[str, ...]:
    """Return the classes that a part of an address names, in the order in which they are known."""
    names = address.parted(texts.get(part, ""))
    return tuple(name for name in known if name in names)


def _confidence_range(text: str) -> tuple[float, float] | None:
    """Read a range of confidence such as ``0.5to0.9``; None where it is none, or all there is."""
    least, _, most = text.partition("to")
    low, high = _CONFIDENCE.said(least), _CONFIDENCE.said(most)
    if low is None or high is None or low > high or (low, high) == ALL_CONFIDENCES:
        return None
    return low, high


def _is_cell(text: str) -> bool:
    """Whether a text names a cell: the numbers of clusters, one per neuron, with hyphens between them."""
    parts = text.split("-")
    return len(parts) <= MOST_NEURONS and all(part.isascii() and part.isdigit() and len(part) <= 3 for part in parts)


def _find(text: str, labels: Mapping[str, str], default: str) -> str:
    return next((name for name, label in labels.items() if text in (name, label)), default)


def unknown(texts: Mapping[str, str]) -> dict[str, str]:
    """Say which parts of an address are not there to be chosen, and what is shown instead: a sentence per part."""
    from idc_core.datasets import DATASETS

    setup, seen = parse(texts), visitor.models()
    entry, tests = seen[setup.model], DATASETS[setup.data]
    missed = {
        part: [name for name in address.parted(texts.get(part, "")) if name and name not in getattr(setup, part)]
        for part in ("classes", "predicted", "without")
    }
    lists = {
        "model": (texts.get("model") in (setup.model, entry.label), "There is no network named {}", entry.label),
        "data": (texts.get("data") in (setup.data, tests.label), f"No tests named {{}} fit {entry.label}", tests.label),
        "layer": (texts.get("layer") == setup.layer, f"{entry.label} has no layer {{}}", setup.layer),
        "m": (
            _M.said(texts.get("m", "")) == setup.m,
            f"The number of neurons is from 1 to {neurons_allowed()}, not {{}}",
            str(setup.m),
        ),
        "classes": (not missed["classes"], "The tests have no class {}", ", ".join(setup.classes) or "all classes"),
        "predicted": (
            not missed["predicted"],
            f"{entry.label} predicts no class {{}} on these tests",
            ", ".join(setup.predicted) or "all predictions",
        ),
        "answers": (texts.get("answers") == setup.answers, "The tests cannot be filtered by {}", "all predictions"),
        "confidence": (
            texts.get("confidence") == setup.confidence,
            "The tests have no range of confidence {}",
            "all tests",
        ),
        "within": (texts.get("within") == setup.within, "There is no cell {}", "all cells"),
        "without": (not missed["without"], "No suspects {} can be left out", ", ".join(setup.without) or "all tests"),
        **{
            name: (texts.get(name) in control.choices(), control.refusal, setup.options[name])
            for name, control in CONTROLS.items()
        },
    }
    refusals = {name: refusal for name, (there, refusal, _) in lists.items() if texts.get(name) and not there}
    values = {**texts, **{part: ", ".join(names) for part, names in missed.items()}}
    return {
        name: f"{refusal.format(quoted(values[name]))}. Shown instead: {lists[name][2]}."
        for name, refusal in refusals.items()
    }


def arrive() -> None:
    """Note which parts of the setup an address brought, before it is read."""
    if new := [name for name in vars(DEFAULT) if address.is_new(name)]:
        st.session_state[_ARRIVED] = new


def not_found(page: str) -> list[str]:
    """Return in sentences what an address asked for in vain; as long as its page and setup are kept."""
    if arrived := st.session_state.pop(_ARRIVED, []):
        refusals = unknown({name: address.read(name) for name in vars(DEFAULT)})
        st.session_state[_NOT_FOUND] = page, [refusals[name] for name in arrived if name in refusals]
    where, sentences = st.session_state.get(_NOT_FOUND, (page, []))
    return list(sentences) if where == page else []


def chosen() -> Setup:
    """Return what is chosen, and make the address say it."""
    setup = parse({name: address.read(name) for name in vars(DEFAULT)})
    for name, text in setup.texts.items():
        address.keep(name, text)
    return setup


def most_neurons() -> int:
    """Return how many important neurons a session may look at."""
    return min(MOST_NEURONS, allowed.most("m") or MOST_NEURONS)


def neurons_allowed() -> str:
    """Write that number, and where it comes from unless it is the studio's own."""
    most = most_neurons()
    return str(most) if most == MOST_NEURONS else f"{most} ({allowed.named('m')})"


def take(name: str) -> None:
    """Keep what was chosen in the sidebar; for callbacks."""
    st.session_state.pop(_NOT_FOUND, None)
    changes = {name: st.session_state[name]}
    if name == "model":
        texts = {part: address.read(part) for part in vars(DEFAULT)}
        data = parse(texts | changes).data
        if data != parse(texts).data:
            changes["data"] = data  # a network of other tests brings these along
    change_setup(**changes)


def fitting_data(model: ModelEntry) -> list[str]:
    """Return the names of the data sets that a network can take, its own included, and of saved suites that fit."""
    from idc_core.datasets import DATASETS
    from idc_core.suites import enter_saved

    own = DATASETS[model.dataset]
    form = _form(own)
    if form is None:
        return [model.dataset]
    fitting = [name for name, data in visitor.datasets().items() if name == model.dataset or _form(data) == form]
    return fitting + enter_saved(own, visitor.person())


def _form(data: DatasetEntry) -> tuple[object, ...] | None:
    """Return what networks for data need; None where they cannot be read, which is told where they are opened."""
    try:
        return data.input_shape, data.task, len(data.class_names)
    except DataError:
        return None
