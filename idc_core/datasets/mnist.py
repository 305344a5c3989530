"""MNIST, 70,000 handwritten digits."""

from idc_core.datasets.base import Items
from idc_core.datasets.labelled import idx_files, read_labelled
from idc_core.datasets.registry import register
from idc_core.datasets.sources import obtain
from idc_core.progress import Progress


@register(
    "mnist",
    "MNIST",
    "60,000 training and 10,000 test images of handwritten digits, 28x28 grey.",
    class_names=tuple("0123456789"),
    input_shape=(1, 28, 28),
    citation=(
        "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, "
        "Proceedings of the IEEE 86(11), 1998"
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
    folder = obtain("mnist", idx_files(split, 3), lambda _: None, on_progress)
    return read_labelled(folder, split, (28, 28), 10, limit, on_progress)
