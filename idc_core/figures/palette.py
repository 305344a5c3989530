"""The colours of every figure, for a light and for a dark ground.

Meaning never rests on colour alone: figures add a pattern, a mark or a label to every distinction made here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError


@dataclass(frozen=True)
class Palette:
    """Colours of one theme as ``#rrggbb``."""

    ground: str  # background
    ink: str  # text
    muted: str  # secondary text
    line: str  # thin lines
    accent: str  # the studio's one accent
    error: str  # what misclassified inputs are drawn in
    tests: str  # the original test set (suites keep their colour on every page)
    training: str  # cells that training inputs reach and no test
    generated: str  # cells that valid generated inputs reach, and nothing else
    counts: tuple[str, ...]  # one-hue scale from few to many; zero has no colour, it is drawn empty

    @property
    def scale(self) -> list[tuple[float, str]]:
        """`counts` as plotly takes a scale: places in 0..1 with their colours."""
        return [(place / (len(self.counts) - 1), colour) for place, colour in enumerate(self.counts)]


LIGHT: Final = Palette(
    ground="#ffffff",
    ink="#1b2024",
    muted="#59646c",
    line="#d3dadd",
    accent="#0b6b72",
    error="#d9622b",
    tests="#1b2024",
    training="#ece6d2",
    generated="#dcd3ee",
    counts=("#d5ecec", "#aedadb", "#8accce", "#6ab9bc", "#4da7ab", "#379499"),
)

_DARK: Final = Palette(
    ground="#12161a",
    ink="#e7ebee",
    muted="#a3adb5",
    line="#39424a",
    accent="#4fb9c1",
    error="#f08a4b",
    tests="#e7ebee",
    training="#a89f85",
    generated="#9d92c4",
    counts=("#4d9aa0", "#66b0b5", "#82c4c8", "#a0d6d9", "#c0e7e9", "#e2f7f7"),
)

CLASSES: Final = (
    "#7aa6d6",
    "#f2a154",
    "#8cc77f",
    "#c79fc0",
    "#edc948",
    "#f28080",
    "#8fd0cb",
    "#c2a189",
    "#ffb3c1",
    "#b5b0ab",
)
"""One fixed colour a class for up to ten classes; more classes are told apart by their labels."""

ON_FILL: Final = "#12161a"
"""Text on `counts`, `error` and `CLASSES` fills of either theme (contrast at least 4.5)."""

_AGAINST = np.array([[5, 48, 97], [33, 102, 172], [146, 197, 222], [255, 255, 255]], dtype=np.float64)
_FOR = np.array([[255, 255, 255], [244, 165, 130], [178, 24, 43], [103, 0, 31]], dtype=np.float64)
RELEVANCE: Final = np.concatenate([_AGAINST, _FOR[1:]])
"""Anchors of the relevance scale, RGB 0..255: blue against, white for zero, red for."""

_PURPLE = np.array([[45, 0, 75], [84, 39, 136], [178, 171, 210], [255, 255, 255]], dtype=np.float64)
_ORANGE = np.array([[255, 255, 255], [253, 184, 99], [179, 88, 6], [127, 59, 8]], dtype=np.float64)


@dataclass(frozen=True)
class _Scheme:
    """A scale of relevance: anchors from against to for, RGB 0..255, and the names of its two colours."""

    anchors: NDArray[np.float64]
    label: str
    against: str
    supports: str


SCHEMES: Final = {
    "red-blue": _Scheme(RELEVANCE, "red and blue", "blue", "red"),
    "orange-purple": _Scheme(np.concatenate([_PURPLE, _ORANGE[1:]]), "orange and purple", "purple", "orange"),
}
"""Scales of relevance by name; the second is told apart with every kind of colour vision (ColorBrewer's PuOr)."""


@dataclass(frozen=True)
class _SuiteStyle:
    """How a suite is drawn on every page; three signs, so that none has to be told by its colour alone."""

    light: str  # colour on a light ground, as ``#rrggbb`` (Okabe and Ito 2008)
    dark: str  # on a dark one
    dash: str  # line, as plotly names it
    marker: str  # mark, as plotly names it
    outline: bool = False
    """Whether fills and marks need an outline in `ink`: the colour is too pale for the light ground."""

    def colour(self, dark: bool) -> str:
        """Return the colour for a dark or a light ground."""
        return self.dark if dark else self.light


_SKY, _ORANGE_INK, _GREEN, _VERMILION = "#56b4e9", "#e69f00", "#009e73", "#d55e00"
_REDDISH, _YELLOW, _BLUE, _GREY = "#cc79a7", "#f0e442", "#0072b2", "#8c8c8c"

_SUITE_STYLES: Final = {
    "original": _SuiteStyle("#000000", "#ffffff", "solid", "circle"),
    "noise": _SuiteStyle(_SKY, _SKY, "dot", "square", outline=True),
    "guided": _SuiteStyle(_ORANGE_INK, _ORANGE_INK, "dash", "diamond", outline=True),
    "rotation": _SuiteStyle(_GREEN, _GREEN, "dashdot", "triangle-up"),
    "shift": _SuiteStyle(_GREEN, _GREEN, "longdash", "triangle-right"),
    "scale": _SuiteStyle(_GREEN, _GREEN, "longdashdot", "triangle-down"),
    "brightness": _SuiteStyle(_GREEN, _GREEN, "2px,3px", "triangle-left"),
    "contrast": _SuiteStyle(_GREEN, _GREEN, "8px,3px", "pentagon"),
    "blur": _SuiteStyle(_GREEN, _GREEN, "12px,3px,2px,3px", "hexagon"),
    "occlusion": _SuiteStyle(_GREEN, _GREEN, "4px,6px", "square-cross"),
    "jpeg": _SuiteStyle(_GREEN, _GREEN, "6px,2px,6px,6px", "diamond-cross"),
    "fgsm": _SuiteStyle(_VERMILION, _VERMILION, "dash", "x"),
    "bim": _SuiteStyle(_REDDISH, _REDDISH, "dashdot", "cross", outline=True),
    "pgd": _SuiteStyle(_REDDISH, _REDDISH, "dot", "star", outline=True),
    "deepfool": _SuiteStyle(_BLUE, "#3d9bd6", "dot", "star-square"),
    "jsma": _SuiteStyle(_YELLOW, _YELLOW, "longdash", "hexagram", outline=True),
    "cw": _SuiteStyle(_BLUE, "#3d9bd6", "longdashdot", "star-diamond"),
    "own": _SuiteStyle(_GREY, _GREY, "solid", "asterisk"),
}
"""Fixed styles by kind of suite; transforms share a green, kinds of attack a colour, none dash and mark."""

_SPARE_MARKERS: Final = (
    "triangle-ne",
    "triangle-sw",
    "triangle-nw",
    "triangle-se",
    "star-triangle-up",
    "star-triangle-down",
    "octagon",
    "circle-cross",
    "circle-x",
    "square-x",
    "diamond-x",
    "bowtie",
    "hourglass",
    "diamond-tall",
    "diamond-wide",
    "hexagon2",
)
"""Marks that no fixed style has, for transforms and attacks that are registered later."""


def suite_style(kind: str) -> _SuiteStyle:
    """Return the style of a kind of suite: its fixed one, or one that no other kind has.

    A kind is "original", "noise", "guided", "own", or a key of `TRANSFORMS` or `ATTACKS`.
    """
    if kind in _SUITE_STYLES:
        return _SUITE_STYLES[kind]
    from idc_core.perturbation import ATTACKS, TRANSFORMS

    later = [name for name in (*TRANSFORMS, *ATTACKS) if name not in _SUITE_STYLES]
    if kind not in later:
        raise SettingError(f"Unknown kind of suite {kind!r}: expected one of {', '.join([*_SUITE_STYLES, *later])}.")
    place = later.index(kind)
    light, dark = (_GREEN, _GREEN) if kind in TRANSFORMS else (_BLUE, "#3d9bd6")
    return _SuiteStyle(light, dark, f"{14 + 2 * place}px,3px", _SPARE_MARKERS[place % len(_SPARE_MARKERS)])


def palette(dark: bool) -> Palette:
    """Return the colours for a dark or a light ground."""
    return _DARK if dark else LIGHT


def rgb(anchor: NDArray[np.float64]) -> str:
    """Return an anchor of a scale as plotly and CSS take colours."""
    return f"rgb({','.join(f'{channel:.0f}' for channel in anchor)})"


def signed_fill(anchor: NDArray[np.float64], pattern: str, colours: Palette) -> dict[str, object]:
    """Return the fill of bars for or against, which a pattern tells apart as well."""
    return {
        "color": rgb(anchor),
        "line": {"color": colours.ink, "width": 1},
        "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": ON_FILL, "size": 7, "solidity": 0.2},
    }


def relevance_colours(relevance: NDArray[np.floating], limit: float, scheme: str = "red-blue") -> NDArray[np.uint8]:
    """Colour relevance red for and blue against, with white at zero: RGB, uint8, in a last axis of 3."""
    if not limit > 0:
        raise SettingError(f"The limit of a relevance scale must be positive; got {limit}.")
    place = (np.clip(relevance / limit, -1.0, 1.0) + 1.0) / 2.0
    colours_at = SCHEMES[scheme].anchors
    anchors = np.linspace(0.0, 1.0, len(colours_at))
    channels = [np.interp(place, anchors, colours_at[:, channel]) for channel in range(3)]
    colours: NDArray[np.uint8] = np.stack(channels, axis=-1).round().astype(np.uint8)
    return colours
