"""What a file turns out to be once it is read: facts that are kept, so that menus need not read it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from idc_core.base.progress import Progress, report
from idc_core.datasets import DATASETS
from idc_core.datasets.dataset import Task, content_fingerprint
from idc_core.datasets.own import DataFile, OwnReader
from idc_core.errors import DataError, ModelError
from idc_core.library import store
from idc_core.library.entry import DataFacts, Entry, NetworkFacts, NetworkSettings, Stamp
from idc_core.library.opening import enter_all, named, network_file
from idc_core.models import MODELS
from idc_core.models.class_order import class_order
from idc_core.models.network_file import NetworkFile

if TYPE_CHECKING:
    from torch.nn import Module

    from idc_core.datasets.entry import DatasetEntry

_TRIED = 2


@dataclass(frozen=True)
class DataForm:
    """What of a data set tells whether a network fits it: plain values, which other processes can be sent."""

    task: Task
    input_shape: tuple[int, ...]
    class_names: tuple[str, ...]

    @classmethod
    def of(cls, data: DatasetEntry) -> DataForm:
        """Take it from an entry of the registry; of a person's own data the first input may be read for it."""
        return cls(data.task, data.input_shape, data.class_names)


def understand(entry: Entry, on_progress: Progress | None = None) -> Entry:
    """Read what an entry refers to, keep what was found, and return the entry.

    Raises
    ------
    IdcError
        If it cannot be read; the message calls it by the entry's name.
    """
    with named(entry):
        stamp = entry.stamp if entry.content else Stamp.of(entry.path)
        if entry.kind == "network":
            network = _network(entry, on_progress)
            if entry.network is not None:  # read again: its layers are those of before until it is connected again
                network = replace(network, layers=entry.network.layers, default_layer=entry.network.default_layer)
            settings = entry.network_settings  # a file may need them to be read at all
            return store.replaced(entry, network=network, network_settings=settings, stamp=stamp, check=None)
        found_data = _data(entry, on_progress)
        return store.replaced(entry, data=found_data, data_settings=entry.data_settings, stamp=stamp)


def _network(entry: Entry, on_progress: Progress | None) -> NetworkFacts:
    from idc_core.models.weights import fingerprint

    report(on_progress, 0, 1, "reading the network")
    file = NetworkFile(entry.path, held=entry.network_settings.held)
    module = file()
    takes = ""
    if expected := file.expects:
        sides = (*((expected.channels,) if expected.channels else ()), *(expected.size or ()))
        takes = " x ".join(map(str, sides)) or (f"{expected.length} tokens" if expected.length else "")
    count = sum(value.numel() for value in module.parameters())
    return NetworkFacts(file.format.label, count, fingerprint(module), takes)


def _data(entry: Entry, on_progress: Progress | None) -> DataFacts:
    file = DataFile(entry.path, entry.preparation)
    reader = OwnReader(entry.label, file, None, ())
    train, test = (reader(split, None, on_progress) for split in ("train", "test"))
    names = reader.names()
    shape = tuple(int(side) for side in train.inputs.shape[1:])
    if test.inputs.shape[1:] != train.inputs.shape[1:]:
        raise DataError(
            f"{entry.path}: training inputs have the shape {shape}, tests {tuple(test.inputs.shape[1:])}; make all "
            "inputs equally large."
        )
    task = reader.task or "classification"
    sizes = len(train.targets), len(test.targets)
    return DataFacts(file.format.label, content_fingerprint(test, names), shape, task, names, *sizes, test.notes)


def connect(entry: Entry, settings: NetworkSettings, on_progress: Progress | None = None) -> Entry:
    """Give a network its data and other settings, keep them and its layers, and return the entry.

    Raises
    ------
    IdcError
        If it does not run on these data; then nothing changes.
    """
    if entry.network is None:
        raise ModelError(f"{entry.label} has not been read yet.")
    if settings.data not in ("", *DATASETS):  # a path or a URL would be opened, and visitors choose this
        raise DataError(f"There is no dataset {settings.data[:60]!r} to choose.")
    report(on_progress, 0, 1, "running the network on two inputs")
    with named(entry):
        file = network_file(replace(entry, network_settings=settings))
        opened = file.entry(settings.data, name=entry.label, layer=settings.layer)
        facts = replace(entry.network, layers=opened.layers, default_layer=opened.default_layer)
    return store.replaced(entry, network=facts, network_settings=settings, check=None)


def fitting(entry: Entry, candidates: Mapping[str, DataForm], on_progress: Progress | None = None) -> dict[str, str]:
    """Try a network on one input of zeros of each data set.

    Parameters
    ----------
    entry : Entry
        A network.
    candidates : mapping
        Forms of data sets by name.
    on_progress : Progress, optional

    Returns
    -------
    dict of str to str
        Why a data set does not fit, by its name; empty where it fits.
    """
    file, settings = network_file(entry), entry.network_settings
    modules: dict[int, Module] = {}  # of several outputs that of the scores is told by the number of classes
    misfits = {}
    for place, (name, data) in enumerate(candidates.items()):
        report(on_progress, place, len(candidates), "data sets tried")
        classes = len(data.class_names) if file.format.read_output else 0
        if classes not in modules:
            with named(entry):
                modules[classes] = replace(file, dataset=name)().eval().float()
        output = "" if file.format.read_output else settings.output
        misfits[name] = _misfit(modules[classes], data, settings, output)
    return misfits


def _misfit(module: Module, data: DataForm, settings: NetworkSettings, output: str) -> str:
    import torch

    from idc_core.models.fitting import names_of_outputs
    from idc_core.models.survey import Survey, Wanted

    names = settings.output_names or names_of_outputs(module)
    needed = 1 if data.task == "regression" else len(data.class_names)
    wanted = Wanted(settings.explain or None, output, (needed, len(names)), settings.output_layout)
    # Token ids have one side, as vectors have, which are floats: the network may take either.
    kinds = (torch.float32, torch.int64) if len(data.input_shape) == 1 else (torch.float32,)
    reason = ""
    for kind in kinds:
        try:
            scores = Survey(module, torch.zeros((_TRIED, *data.input_shape), dtype=kind), "It", wanted, True).scores
        except ModelError as error:
            first = str(error.__cause__ or error).strip().splitlines()
            reason = f"it cannot take inputs of {' x '.join(map(str, data.input_shape))} ({first[0] if first else ''})"
            continue
        return _misfit_of(scores, names, data)
    return reason


def _misfit_of(scores: object, names: tuple[str, ...], data: DataForm) -> str:
    """Say why scores are none of the classes of data; empty where they are."""
    shape = tuple(getattr(scores, "shape", ()))
    if not shape:
        return f"it gives a {type(scores).__name__}, and no scores"
    if len(shape) > 2:
        return f"it gives scores of shape (n, {', '.join(map(str, shape[1:]))}): say which are explained"
    outputs, needed = 1 if len(shape) == 1 else int(shape[1]), len(data.class_names)
    if data.task == "regression":
        return "" if outputs == 1 else f"it gives {outputs} scores, and these data need one number"
    outputs = 2 if (outputs, needed) == (1, 2) else outputs
    try:
        fits = class_order(names, outputs, data.class_names, "it") is not None
    except ModelError as error:
        return str(error).rstrip(".")
    return "" if fits else f"it gives {outputs} scores, and these data have {needed} classes"


def checked(entry: Entry, on_progress: Progress | None = None) -> Entry:
    """Check a network that has its data, keep what was found, and return the entry.

    Raises
    ------
    IdcError
        If the network or its data cannot be read at all.
    """
    from idc_core.analysis.network_check import check_network  # needs torch

    enter_all()
    if entry.name not in MODELS:
        raise ModelError(f"{entry.label} cannot be checked before its data are chosen.")
    with named(entry):
        return store.replaced(entry, check=asdict(check_network(entry.name, on_progress=on_progress)))
