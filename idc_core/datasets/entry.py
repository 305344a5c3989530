"""One row of the list of datasets."""

from collections.abc import Callable
from dataclasses import dataclass

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items, Task

Loader = Callable[[str, int | None, Progress | None], Items]
"""Called with (split, limit, on_progress); `split` and `limit` have been checked."""


@dataclass(frozen=True)
class Quantity:
    """What the targets of a regression are.

    Attributes
    ----------
    name, unit : str
        For a person; the unit may be empty.
    negative, positive : str
        Where relevance moves the prediction: below 0, and above.
    signed : bool
        Whether the sign is a direction, so that it is always written.
    """

    name: str = "target"
    unit: str = ""
    negative: str = "to lower values"
    positive: str = "to higher values"
    signed: bool = False


@dataclass(frozen=True)
class DatasetEntry:
    """One row of the registry: what menus, command line and documentation show of a dataset.

    Attributes
    ----------
    name, label, help : str
        Short name, as given to `load_dataset`; name for a person; one sentence on what it is.
    task : {"classification", "regression"}
    class_names : tuple of str
        Names by class index; empty for regression.
    input_shape : tuple of int
        Shape of one input: (C, H, W) for images, (length,) for text.
    citation, licence : str
        The work to cite, and the terms its authors give.
    load : callable
        Reads one split: `(split, limit, on_progress) -> Items`.
    learns_from : int or None
        The dashboard learns neurons and clusters from the first so many training inputs, and says so; None for all.
    quantity : Quantity
        What the targets of a regression are.
    edition : int
        Another number whenever a data set of this name is registered again; 0 for those of the project.
    """

    name: str
    label: str
    help: str
    task: Task
    class_names: tuple[str, ...]
    input_shape: tuple[int, ...]
    citation: str
    licence: str
    load: Loader
    learns_from: int | None = None
    quantity: Quantity = Quantity()
    edition: int = 0
