"""MNIST, 70,000 handwritten digits."""

from idc_core.datasets.dataset import Items
from idc_core.datasets.idx import idx_files, read_labelled
from idc_core.datasets.openml import openml_source
from idc_core.datasets.registry import register
from idc_core.datasets.sources import obtain
from idc_core.progress import Progress

_SOURCE = openml_source(
    "mnist_784",
    (28, 28),
    {
        "train": (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
        "test": (980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009),
    },
    megabytes=15,
)


@register(
    "mnist",
    "MNIST",
    "60,000 training and 10,000 test images of handwritten digits, 28x28 grey.",
    class_names=tuple("0123456789"),
    input_shape=(1, 28, 28),
    citation=(
        "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document "
        "recognition, Proceedings of the IEEE 86(11), 1998"
    ),
    licence="CC BY-SA 3.0",
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Read one split; see `registry.load_dataset` for parameters and errors.

    Returns
    -------
    Items
        Images float32 (n, 1, 28, 28) in 0..1, labels int64 (n,).
    """
    folder = obtain("mnist", "MNIST", [idx_files(split, 3)], _SOURCE, on_progress)
    return read_labelled(folder, split, (28, 28), 10, limit, on_progress)
