"""MNIST, 70,000 handwritten digits."""

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.idx import idx_files, mnist_layout, read_labelled
from idc_core.datasets.registry import shipped
from idc_core.datasets.sources import obtain

_SOURCE = mnist_layout(
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    train_images=("440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609", 10),
    train_labels=("3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c", 1),
    test_images=("8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6", 2),
    test_labels=("f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6", 1),
)


@shipped(
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
    """Return images float32 (n, 1, 28, 28) in 0..1 and labels int64 (n,) of one split."""
    folder = obtain("mnist", "MNIST", [idx_files(split, 3)], _SOURCE, on_progress)
    return read_labelled(folder, split, (28, 28), 10, limit, on_progress)
