"""Fashion-MNIST, 70,000 pictures of clothes in the format of MNIST."""

from idc_core.datasets.dataset import Items
from idc_core.datasets.idx import idx_files, read_labelled
from idc_core.datasets.openml import openml_source
from idc_core.datasets.registry import register
from idc_core.datasets.sources import obtain
from idc_core.progress import Progress

CLASS_NAMES = ("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot")
_SOURCE = openml_source("Fashion-MNIST", (28, 28), {"train": (6000,) * 10, "test": (1000,) * 10}, megabytes=31)


@register(
    "fashion-mnist",
    "Fashion-MNIST",
    "60,000 training and 10,000 test pictures of ten kinds of clothes, 28x28 grey.",
    class_names=CLASS_NAMES,
    input_shape=(1, 28, 28),
    citation=(
        "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms, arXiv:1708.07747, 2017"
    ),
    licence="MIT",
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Read one split; see `registry.load_dataset` for parameters and errors.

    Returns
    -------
    Items
        Images float32 (n, 1, 28, 28) in 0..1, labels int64 (n,).
    """
    folder = obtain("fashion-mnist", "Fashion-MNIST", [idx_files(split, 3)], _SOURCE, on_progress)
    return read_labelled(folder, split, (28, 28), 10, limit, on_progress)
