"""Fashion-MNIST, 70,000 pictures of clothes in the format of MNIST."""

from idc_core.base.progress import Progress
from idc_core.datasets.dataset import Items
from idc_core.datasets.idx import idx_files, mnist_layout, read_labelled
from idc_core.datasets.registry import shipped
from idc_core.datasets.sources import obtain

_CLASS_NAMES = (
    "T-shirt/top",
    "Trouser",
    "Pullover",
    "Dress",
    "Coat",
    "Sandal",
    "Shirt",
    "Sneaker",
    "Bag",
    "Ankle boot",
)
_SOURCE = mnist_layout(
    "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
    train_images=("3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84", 26),
    train_labels=("a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845", 1),
    test_images=("346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073", 5),
    test_labels=("67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5", 1),
)


@shipped(
    "fashion-mnist",
    "Fashion-MNIST",
    "60,000 training and 10,000 test pictures of ten kinds of clothes, 28x28 grey.",
    class_names=_CLASS_NAMES,
    input_shape=(1, 28, 28),
    citation=(
        "H. Xiao, K. Rasul, R. Vollgraf, Fashion-MNIST: a Novel Image Dataset for Benchmarking Machine "
        "Learning Algorithms, arXiv:1708.07747, 2017"
    ),
    licence="MIT",
)
def load(split: str, limit: int | None, on_progress: Progress | None) -> Items:
    """Return images float32 (n, 1, 28, 28) in 0..1 and labels int64 (n,) of one split."""
    folder = obtain("fashion-mnist", "Fashion-MNIST", [idx_files(split, 3)], _SOURCE, on_progress)
    return read_labelled(folder, split, (28, 28), 10, limit, on_progress)
