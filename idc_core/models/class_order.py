"""Which output of a network is which class of its data: told by names, or by numbers that data have for names."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from idc_core.base.files import SHIPPED
from idc_core.errors import ModelError

_SYNSET = re.compile(r"n\d{8}")
"""An id of WordNet, as folders of ImageNet are named."""

_NO_NAME = re.compile(r"(label|class|output|category|cls)?[\s_-]*(\d+)", re.IGNORECASE)
_IMAGENET = 1000
_SAID = 12


@dataclass(frozen=True)
class ClassOrder:
    """The output of each class of the data, in the order of these, and how it was found: "" for the order itself."""

    outputs: tuple[int, ...]
    said: str = ""

    def same(self, outputs: int) -> bool:
        """Whether the network's outputs are the classes of the data as they are."""
        return self.outputs == tuple(range(outputs))


def class_order(own: Sequence[str], outputs: int, classes: Sequence[str], where: str) -> ClassOrder | None:
    """Match the outputs of a network with the classes of its data.

    Parameters
    ----------
    own : sequence of str
        Names that the network gives its outputs, in their order; empty where it gives none.
    outputs : int
        How many it has.
    classes : sequence of str
        Names of the data's classes.
    where : str
        What has these outputs: the beginning of a sentence.

    Returns
    -------
    ClassOrder
        None where the network gives no names, and has another number of outputs than the data have classes.

    Raises
    ------
    ModelError
        If the names are of other classes, or there are too few outputs for them.

    Notes
    -----
    Names are compared without case, spaces and underscores; one of several synonyms with commas between them is enough,
    and an id of WordNet in front of a name does not count. Ids alone are those of the 1,000 classes of ImageNet, where
    a network has as many outputs, or 1,001. Classes that are called by whole numbers are outputs of these numbers,
    where a network has more outputs than the data have classes, or names that are words; but 0 and 1 alone of more than
    two outputs are what one of several labels has, and refused.
    """
    if len(own) != outputs:
        own = ()
    told = own if any(not _numbered(name, place) for place, name in enumerate(own)) else ()
    by_name = _by_name(own, classes)
    if by_name is not None:
        said = told or by_name != tuple(range(outputs))
        return ClassOrder(by_name, _said(by_name, own, classes) if said else "")
    by_synset = _by_synset(told, outputs, classes)
    if by_synset is not None:
        return ClassOrder(by_synset, _said(by_synset, own or _synsets(outputs - _IMAGENET), classes))
    numbers = tuple(int(name) if re.fullmatch(r"\d{1,9}", name) else -1 for name in classes)
    by_number = min(numbers, default=-1) >= 0 and max(numbers) < outputs and len(set(numbers)) == len(numbers)
    if by_number and sorted(numbers) == [0, 1] and outputs > 2:
        raise ModelError(
            f"{where} has {outputs:,} outputs{', ' * bool(own)}{_listed(own)}, but its data have the classes 0 and 1 "
            "alone, as one of several labels has that are yes or no. Networks of several labels are not analysed; let "
            "the network give the score of that label alone. Where 0 and 1 are its first two classes, say so by "
            f"{names_option(list(map(str, range(outputs))))} (in Python class_names of the network)."
        )
    if by_number and (told or outputs > len(classes)):
        return ClassOrder(numbers, _said(numbers, own or tuple(map(str, range(outputs))), classes))
    if tuple(classes) == ("False", "True") and outputs == len(classes):
        return ClassOrder((0, 1), _said((0, 1), own, classes) if told else "")
    if outputs == len(classes) and not told:
        return ClassOrder(tuple(range(outputs)))
    if not told:
        return None
    raise ModelError(f"{where} {_misfit(told, outputs, classes)}")


def _numbered(name: str, place: int) -> bool:
    """Whether a name says no more than the number of its output."""
    found = _NO_NAME.fullmatch(name.strip())
    return found is not None and int(found[2]) in (place, place + 1)


@cache
def _synsets(before: int) -> tuple[str, ...]:
    """Return the ids of WordNet of the 1,000 classes of ImageNet in the order of outputs, behind so many others.

    The order is that of O. Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge", IJCV 115, 2015.
    """
    ids = (SHIPPED / "assets" / "imagenet-synsets.txt").read_text(encoding="utf-8").split()
    return (*(f"background {number}" for number in range(before)), *ids)


def _by_synset(own: Sequence[str], outputs: int, classes: Sequence[str]) -> tuple[int, ...] | None:
    """Return the outputs of a network for ImageNet, where classes are called by ids of WordNet; None for others.

    TensorFlow's have one more output, for what is none of the classes, in front.
    """
    found = [_SYNSET.match(name) for name in classes]
    more = outputs - _IMAGENET
    if more not in (0, 1) or not all(found) or (own and not ("tench" in own[more] and "toilet" in own[-1])):
        return None
    places = {synset: place for place, synset in enumerate(_synsets(more))}
    order = [places.get(one[0], -1) for one in found if one is not None]
    return tuple(order) if min(order) >= 0 and len(set(order)) == len(order) else None


def _plain(name: str) -> str:
    """Return a name without case, spaces and signs; with these where it has nothing else."""
    return "".join(filter(str.isalnum, name.casefold())) or name


def _forms(name: str) -> list[tuple[str, ...]]:
    """Return what a name may be matched by, the surest first: the whole, less an id of WordNet, that id, synonyms."""
    synset = _SYNSET.match(name)
    rest = name[synset.end() :].strip(" _-:,") if synset else ""
    parts = tuple(_plain(part) for part in (rest or name).split(",") if part.strip())
    return [(_plain(name),), (_plain(rest),) if rest else (), (synset[0],) if synset else (), parts]


def _by_name(own: Sequence[str], classes: Sequence[str]) -> tuple[int, ...] | None:
    """Return the output of each class by name; None where a class has none, or two have one."""
    tables = _tables(own)
    found = []
    for name in classes:
        forms = [form for part in _forms(name) for form in part]
        place = next((table[form] for table in tables for form in forms if form in table), None)
        if place is None:
            return None
        found.append(place)
    return tuple(found) if len(set(found)) == len(found) else None


def _tables(own: Sequence[str]) -> list[Mapping[str, int]]:
    """Return, for each way to match, the outputs by what they are matched by; what two outputs share tells neither."""
    tables: list[Mapping[str, int]] = []
    for way in range(4):
        pairs = [(form, place) for place, name in enumerate(own) for form in dict.fromkeys(_forms(name)[way])]
        often = Counter(form for form, _ in pairs)
        tables.append({form: place for form, place in pairs if often[form] == 1})
    return tables


def _said(order: tuple[int, ...], own: Sequence[str], classes: Sequence[str]) -> str:
    """Return names of outputs and classes side by side."""
    pairs = [f"{place} {own[place]!r:.40} is {name!r:.40}" for name, place in zip(classes, order, strict=True)]
    more = f" and {len(pairs) - _SAID} more" if len(pairs) > _SAID else ""
    left = len(own) - len(order)
    return (
        f"Outputs and classes of the data by name: {', '.join(pairs[:_SAID])}{more}."
        + f" {left:,} other outputs are left out." * bool(left)
    )


def _misfit(own: Sequence[str], outputs: int, classes: Sequence[str]) -> str:
    """Say what does not fit, side by side, and what to do."""
    has = f"has {outputs:,} outputs, {_listed(own)}"
    data = f"its data have {len(classes):,} class{'es' if len(classes) > 1 else ''}, {_listed(classes)}"
    if outputs < len(classes):
        return f"{has}, but {data}: choose data of its classes."
    missing = [name for name in classes if _by_name(own, [name]) is None]
    what = f"no output is called {_listed(missing)}" if missing else "several classes are called as one output"
    return (
        f"{has}, but {data}: {what}. Rename the classes, or say what the outputs are called in the data by "
        f"{names_option(classes if outputs == len(classes) <= _SAID else ())} in the order of the outputs (in Python "
        "class_names)."
    )


def names_option(names: Sequence[str]) -> str:
    """Return the option that names outputs, as a shell takes it; with words for names that are none, or have commas."""
    if len(names) > _SAID and list(names) == list(map(str, range(len(names)))):
        return f"--class-names $(seq -s , 0 {len(names) - 1})"
    said = "NAME,NAME,..." if not names or any("," in name for name in names) else shlex.quote(",".join(names))
    return f"--class-names {said}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SAID:,} more" if len(names) > _SAID else ""
    return ", ".join(f"{name!r:.40}" for name in names[:_SAID]) + more
