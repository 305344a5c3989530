"""The colours of every figure, for a light and for a dark ground.

Meaning never rests on colour alone: figures add a pattern, a mark or a label to every distinction made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from idc_core.errors import SettingError

Scale: TypeAlias = "list[tuple[float, str]]"
"""A scale as plotly takes it: places in 0..1 with their colours as ``#rrggbb``."""


@dataclass(frozen=True)
class Palette:
    """Colours of one theme as ``#rrggbb``."""

    ground: str  # background
    ink: str  # text
    muted: str  # secondary text
    line: str  # thin lines
    accent: str  # the studio's one accent
    error: str  # what misclassified inputs are drawn in
    errors: tuple[str, str, str]  # where few, some and many of the inputs are
    tests: str  # the original test set (suites keep their colour on every page)
    training: str  # cells that training inputs reach and no test
    generated: str  # cells that valid generated inputs reach, and nothing else
    lines: tuple[str, ...]  # lines that are told apart, each with a dash and a name of its own too
    counts: tuple[str, ...]  # one-hue steps from few to many; zero has no colour, it is drawn empty

    @property
    def scale(self) -> Scale:
        """The scale from nothing, in the ground's colour, to many."""
        steps = (self.ground, *self.counts)
        return [(place / (len(steps) - 1), colour) for place, colour in enumerate(steps)]


LIGHT: Final = Palette(
    ground="#ffffff",
    ink="#1b2024",
    muted="#59646c",
    line="#d3dadd",
    accent="#0b6b72",
    error="#d9622b",
    errors=("#f3d3c0", "#eab08d", "#e28a5a"),
    tests="#1b2024",
    training="#e2e5ec",
    generated="#cbbcf2",
    lines=("#0072b2", "#c35500", "#00805e", "#a8457f", "#7d6500", "#1b2024"),
    counts=("#d5ecec", "#aedadb", "#8accce", "#6ab9bc", "#4da7ab", "#379499"),
)

_DARK: Final = Palette(
    ground="#12161a",
    ink="#e7ebee",
    muted="#a3adb5",
    line="#39424a",
    accent="#4fb9c1",
    error="#f08a4b",
    errors=("#a89686", "#c09a7e", "#d89568"),
    tests="#e7ebee",
    training="#788091",
    generated="#a48fe0",
    lines=("#56b4e9", "#f08a4b", "#2fc79a", "#e39cc8", "#e6c34a", "#e7ebee"),
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


def between(start: str, end: str, share: float) -> str:
    """Mix two colours; a share of 0 is the first."""
    first, last = _channels(start), _channels(end)
    return "#" + "".join(f"{round(value):02x}" for value in first + (last - first) * share)


def at(scale: Scale, share: float) -> str:
    """Return the colour of a scale at a place in 0..1, the nearest end's for places beyond."""
    places = np.array([place for place, _ in scale])
    upper = int(np.clip(np.searchsorted(places, share), 1, len(scale) - 1))
    (low, start), (high, end) = scale[upper - 1], scale[upper]
    return between(start, end, min(max((share - low) / (high - low), 0.0), 1.0))


def contrast(first: str, other: str) -> float:
    """Return the contrast of two colours, 1 to 21 (WCAG 2.2)."""
    light, dark = sorted((_luminance(first), _luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def ink_on(fill: str) -> str:
    """Return the colour of text on a fill: black or white, one of which has a contrast of 4.5 on every colour."""
    return max("#000000", "#ffffff", key=lambda ink: contrast(ink, fill))


def _channels(colour: str) -> NDArray[np.float64]:
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=np.float64)


def _luminance(colour: str) -> float:
    share = _channels(colour) / 255
    linear = np.where(share <= 0.04045, share / 12.92, ((share + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


@dataclass(frozen=True)
class _Scheme:
    """A scale of relevance: colours from against to for, in the middle the ground's, and the names of its two ends."""

    light: tuple[str, ...]
    dark: tuple[str, ...]
    label: str
    against: str
    supports: str

    def anchors(self, dark: bool) -> NDArray[np.float64]:
        """Return the colours of a theme, RGB 0..255 (7, 3): what is strong stands out from the ground."""
        return np.stack([_channels(colour) for colour in (self.dark if dark else self.light)])

    def scale(self, dark: bool) -> Scale:
        """Return the colours of a theme as plotly takes them."""
        colours = self.dark if dark else self.light
        return [(place / (len(colours) - 1), colour) for place, colour in enumerate(colours)]

    @property
    def fills(self) -> tuple[str, str]:
        """Colours of bars against and for, on either ground: outlined in ink, with `ON_FILL` on them."""
        return self.light[2], self.light[4]


SCHEMES: Final = {
    "red-blue": _Scheme(
        ("#053061", "#2166ac", "#92c5de", LIGHT.ground, "#f4a582", "#b2182b", "#67001f"),
        ("#93ccff", "#4d9be0", "#1d4a7a", _DARK.ground, "#7a2a26", "#e2584a", "#ffa18c"),
        "red and blue",
        "blue",
        "red",
    ),
    "orange-purple": _Scheme(
        ("#2d004b", "#542788", "#b2abd2", LIGHT.ground, "#fdb863", "#b35806", "#7f3b08"),
        ("#c9b8f9", "#9a7fdc", "#4d3a80", _DARK.ground, "#6e4310", "#dd8a2a", "#ffc573"),
        "orange and purple",
        "purple",
        "orange",
    ),
}
"""Scales of relevance by name; the second is told apart with every kind of colour vision (after ColorBrewer's PuOr)."""


@dataclass(frozen=True)
class _SuiteStyle:
    """How a suite is drawn on every page; three signs, so that none has to be told by its colour alone."""

    light: str  # colour on a light ground, as ``#rrggbb``
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
    "noise": _SuiteStyle("#2586c0", _SKY, "dot", "square", outline=True),
    "guided": _SuiteStyle("#b57b00", _ORANGE_INK, "dash", "diamond", outline=True),
    "rotation": _SuiteStyle(_GREEN, _GREEN, "dashdot", "triangle-up"),
    "shift": _SuiteStyle(_GREEN, _GREEN, "longdash", "triangle-right"),
    "scale": _SuiteStyle(_GREEN, _GREEN, "longdashdot", "triangle-down"),
    "brightness": _SuiteStyle(_GREEN, _GREEN, "2px,3px", "triangle-left"),
    "contrast": _SuiteStyle(_GREEN, _GREEN, "8px,3px", "pentagon"),
    "blur": _SuiteStyle(_GREEN, _GREEN, "12px,3px,2px,3px", "hexagon"),
    "occlusion": _SuiteStyle(_GREEN, _GREEN, "4px,6px", "square-cross"),
    "jpeg": _SuiteStyle(_GREEN, _GREEN, "6px,2px,6px,6px", "diamond-cross"),
    "typos": _SuiteStyle(_GREEN, _GREEN, "4px,2px", "arrow-up"),
    "synonyms": _SuiteStyle(_GREEN, _GREEN, "16px,3px", "arrow-right"),
    "dropped": _SuiteStyle(_GREEN, _GREEN, "1px,4px", "arrow-down"),
    "swapped": _SuiteStyle(_GREEN, _GREEN, "20px,5px", "arrow-left"),
    "fgsm": _SuiteStyle(_VERMILION, _VERMILION, "dash", "x"),
    "bim": _SuiteStyle(_REDDISH, _REDDISH, "dashdot", "cross", outline=True),
    "pgd": _SuiteStyle("#882255", "#e05c9a", "dot", "star"),
    "deepfool": _SuiteStyle(_BLUE, "#3d9bd6", "dot", "star-square"),
    "jsma": _SuiteStyle("#938a00", _YELLOW, "longdash", "hexagram", outline=True),
    "cw": _SuiteStyle("#332288", "#9d8df1", "longdashdot", "star-diamond"),
    "pgd-l2": _SuiteStyle("#7a4a1e", "#c08a5a", "9px,4px", "octagon"),
    "ddn": _SuiteStyle("#777716", "#b8b84a", "3px,5px", "hexagon2"),
    "boundary": _SuiteStyle("#2f8f80", "#44aa99", "14px,4px,2px,4px", "diamond-tall"),
    "hop-skip-jump": _SuiteStyle("#cc6677", "#cc6677", "10px,8px", "diamond-wide"),
    "own": _SuiteStyle(_GREY, _GREY, "solid", "asterisk"),
}
"""Fixed styles by kind of suite: Okabe and Ito's eight (2008), darker where a line would be too pale, and others after
Tol's muted scheme.

Transforms, changes of texts and corruptions share a green, nothing else shares a colour; none share dash and mark."""

_SPARE_MARKERS: Final = (
    "triangle-ne",
    "triangle-sw",
    "triangle-nw",
    "triangle-se",
    "star-triangle-up",
    "star-triangle-down",
    "circle-cross",
    "circle-x",
    "square-x",
    "diamond-x",
    "bowtie",
    "hourglass",
    "circle-open-dot",
    "square-open-dot",
    "diamond-open-dot",
    "star-open",
    "pentagon-open",
    "hexagram-open",
    "octagon-open",
    "star-square-open",
)
"""Marks that no fixed style has, for corruptions, and for transforms and attacks that are registered later."""


def suite_style(kind: str) -> _SuiteStyle:
    """Return the style of a kind of suite: its fixed one, or one that no other kind has.

    A kind is "original", "noise", "guided", "own", or a key of `TRANSFORMS`, `TEXT_CHANGES`, `CORRUPTIONS` or
    `ATTACKS`.
    """
    if kind in _SUITE_STYLES:
        return _SUITE_STYLES[kind]
    from idc_core.perturbation import ATTACKS, CORRUPTIONS, TEXT_CHANGES, TRANSFORMS

    later = [name for name in (*CORRUPTIONS, *TRANSFORMS, *TEXT_CHANGES, *ATTACKS) if name not in _SUITE_STYLES]
    if kind not in later:
        raise SettingError(f"Unknown kind of suite {kind!r}: expected one of {', '.join([*_SUITE_STYLES, *later])}.")
    place = later.index(kind)
    light, dark = (_GREEN, _GREEN) if kind not in ATTACKS else (_BLUE, "#3d9bd6")
    return _SuiteStyle(light, dark, f"{14 + 2 * place}px,4px", _SPARE_MARKERS[place % len(_SPARE_MARKERS)])


def palette(dark: bool) -> Palette:
    """Return the colours for a dark or a light ground."""
    return _DARK if dark else LIGHT


def recoloured(part: Any, dark: bool) -> Any:
    """Return a part of a chart, drawn with one theme's palette alone, with that of a dark or a light ground."""
    if isinstance(part, Mapping):
        return {name: recoloured(one, dark) for name, one in part.items()}
    if isinstance(part, list | tuple):
        return [recoloured(one, dark) for one in part]
    pairs = zip(_colours(palette(not dark)), _colours(palette(dark)), strict=True)
    return dict(pairs).get(part, part) if isinstance(part, str) else part


def _colours(theme: Palette) -> list[str]:
    every = vars(theme).values()
    return [colour for one in every for colour in ((one,) if isinstance(one, str) else one)]


def signed_fill(colour: str, pattern: str, colours: Palette) -> dict[str, object]:
    """Return the fill of bars for or against, which a pattern tells apart as well."""
    return {
        "color": colour,
        "line": {"color": colours.ink, "width": 1},
        "pattern": {"shape": pattern, "fillmode": "overlay", "fgcolor": ON_FILL, "size": 7, "solidity": 0.2},
    }


def relevance_colours(
    relevance: NDArray[np.floating], limit: float, scheme: str = "red-blue", *, dark: bool = False
) -> NDArray[np.uint8]:
    """Colour relevance red for and blue against, with the ground's colour at zero: RGB, uint8, in a last axis of 3."""
    if not limit > 0:
        raise SettingError(f"The limit of a relevance scale must be positive; got {limit}.")
    place = (np.clip(relevance / limit, -1.0, 1.0) + 1.0) / 2.0
    colours_at = SCHEMES[scheme].anchors(dark)
    anchors = np.linspace(0.0, 1.0, len(colours_at))
    channels = [np.interp(place, anchors, colours_at[:, channel]) for channel in range(3)]
    colours: NDArray[np.uint8] = np.stack(channels, axis=-1).round().astype(np.uint8)
    return colours
