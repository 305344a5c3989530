"""What a page needs of network and tests: told from what is registered, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from studio.state.setup import Setup

if TYPE_CHECKING:
    from idc_core.datasets.entry import DatasetEntry

_Test = Callable[["DatasetEntry", "DatasetEntry"], bool]
"""Called with the tests, and the data that the network was trained on."""


@dataclass(frozen=True)
class Need:
    """Something without which a page has nothing to show.

    Where it is not met, `short` stands behind the page's title, `reason` is a sentence that says why, `instead` the
    page to open, and `more` what to find there.
    """

    short: str
    reason: str
    instead: str
    more: str
    is_met: _Test


def pictures(reason: str, instead: str, more: str) -> Need:
    """Return the need of tests that are pictures."""
    return Need("no pictures", reason, instead, more, lambda tests, _: len(tests.input_shape) == 3)


def classes(reason: str, instead: str, more: str) -> Need:
    """Return the need of a network that predicts classes."""
    return Need("no classes", reason, instead, more, lambda tests, _: bool(tests.class_names))


def true_classes(reason: str, instead: str, more: str) -> Need:
    """Return the need of tests whose classes, if there are any, are the ones that the network predicts."""
    return Need("other classes", reason, instead, more, lambda tests, own: tests.class_names == own.class_names)


def first_unmet(needs: tuple[Need, ...], setup: Setup | None) -> Need | None:
    """Return the first need that a setup does not meet; None where it meets all, or as the studio opens."""
    if not needs or setup is None:
        return None
    from idc_core.datasets import DATASETS
    from idc_core.models import MODELS

    tests, own = DATASETS[setup.data], DATASETS[MODELS[setup.model].dataset]
    return next((need for need in needs if not need.is_met(tests, own)), None)
