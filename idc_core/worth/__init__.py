"""What a higher score of a criterion is worth: yardsticks that say which tests of a pool find which targets.

What needs torch is imported when it is first used.
"""

from typing import TYPE_CHECKING

from idc_core.base.lazy import lazy
from idc_core.worth.yardstick import Yardstick as Yardstick

if TYPE_CHECKING:
    from idc_core.worth.corruptions import corrupted_gains as corrupted_gains
    from idc_core.worth.faults import Faults as Faults
    from idc_core.worth.faults import distinct_faults as distinct_faults
    from idc_core.worth.mutants import Mutants as Mutants
    from idc_core.worth.mutants import mutants_after_training as mutants_after_training
    from idc_core.worth.operators import OPERATORS as OPERATORS
    from idc_core.worth.retrained import retrained_mutants as retrained_mutants
    from idc_core.worth.training_changes import TRAINING_CHANGES as TRAINING_CHANGES
    from idc_core.worth.validity import Gain as Gain
    from idc_core.worth.validity import valid_gain as valid_gain
else:
    __all__, __getattr__ = lazy(__name__, __file__)
