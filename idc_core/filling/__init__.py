"""Filling the grid: inputs made for the cells that tests do not reach, each judged by a detector and by other networks.

What needs torch is imported when it is first used.
"""

from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy
from idc_core.filling.common import Common as Common
from idc_core.filling.common import in_common as in_common
from idc_core.filling.settings import FILL as FILL
from idc_core.filling.settings import FillSettings as FillSettings

if TYPE_CHECKING:
    from idc_core.filling.accepted import Change as Change
    from idc_core.filling.accepted import accepted_inputs as accepted_inputs
    from idc_core.filling.accepted import best_usable as best_usable
    from idc_core.filling.accepted import change_by as change_by
    from idc_core.filling.grid_filling import fill_grid as fill_grid
    from idc_core.filling.judging import Judge as Judge
    from idc_core.filling.judging import fit_judge as fit_judge
    from idc_core.filling.result import Filling as Filling
    from idc_core.filling.result import suite_of as suite_of
else:
    __all__, __getattr__ = lazy(__name__, __file__)
