"""How much a test set leaves to be reached by a criterion."""

from __future__ import annotations

import numpy as np

from idc_core.base.parameters import shown
from idc_core.coverage.cells import Codes
from idc_core.coverage.idc import IDC
from idc_core.coverage.profiles import Profiles
from idc_core.coverage.registry import Criterion
from idc_core.errors import SettingError
from idc_core.evidence.discovery import Discovery
from idc_core.evidence.finding import Control, Finding

FEWEST = 4
"""Tests of which one half can say what the other reaches."""


def discovery(criterion: IDC | Profiles) -> Discovery:
    """Return how much the tests leave to be reached: the chance that the next one reaches something new, and so on.

    Parameters
    ----------
    criterion : IDC or Profiles
        IDC that has counted the tests; of any other criterion, which keeps what was reached but not how often, what
        each test covers: ``discovery(criterion.profile(tests))``.

    Returns
    -------
    Discovery
        ``chance``, ``low`` and ``high`` (95 %), ``at_least`` and ``new(t)``.

    Raises
    ------
    SettingError
        If the criterion has no targets to count (NLC), or keeps no counts.
    DataError
        If there are fewer than two tests.

    Notes
    -----
    Where a test covers several targets (neurons, sections), `chance` is that of a test that covers any new one; where
    it covers none, it counts among the tests all the same. The clusters of CC depend on the order of the tests: profile
    them in the order given. How often the intervals hold is in docs/results/discovery.md.

    Examples
    --------
    >>> left = discovery(idc.update(tests))  # doctest: +SKIP
    >>> f"{left.chance:.3f} ({left.low:.3f} to {left.high:.3f})"  # doctest: +SKIP
    '0.050 (0.022 to 0.078)'
    """
    if isinstance(criterion, IDC):
        return Discovery.of_counts(criterion.counts.counts, criterion.total)
    if isinstance(criterion, Profiles) and criterion.total != 0:
        return Discovery.of_incidence(criterion.starts, criterion.targets, criterion.total)
    if isinstance(criterion, Profiles) or (isinstance(criterion, Criterion) and not hasattr(criterion, "covered")):
        raise SettingError("This criterion has no targets to count, so that none can be new: choose another one.")
    if isinstance(criterion, Criterion):
        raise SettingError(
            f"{criterion.card.label} does not keep how many tests reached each target: give what each test covers, "
            "discovery(criterion.profile(tests))."
        )
    raise SettingError(f"Expected IDC that has counted tests, or the profiles of a criterion, not {shown(criterion)}.")


def second_half(codes: Codes) -> Finding:
    """Compare the new cells of the second half of tests with what the first half predicts, by every test's cell (n,).

    A prediction holds for further tests like these. Where the halves, in the order given, are of two kinds (MNIST's
    tests are), it does not hold for either.

    Raises
    ------
    DataError
        If there are fewer than `FEWEST` tests.
    """
    middle = (len(codes) + 1) // 2
    first, second = codes[:middle], codes[middle:]
    left, later = Discovery.of_counts(np.unique(first, return_counts=True)[1]), len(second)
    predicted, found = left.new(later), len(np.setdiff1d(second, first))
    return Finding(
        "order",
        "New cells in the second half of the tests",
        found,
        Control("predicted from the first half", *predicted),
        found - predicted.high,
        found - predicted.low,
        left.p_of(later, found),
        left.least_p(later),
    )
