"""The whole of fit and update against the forward passes they must make.

LeNet-5, 60,000 training and 10,000 test images of MNIST's size, m = 6. The images are strokes drawn at random, so that
no data set has to be there.
"""

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from benchmarks.bench_relevance import best_batch_size
from benchmarks.measure import Row, few, medians
from benchmarks.passes import forward
from idc_core.coverage import IDC
from idc_core.models import MODELS


def whole() -> list[Row]:
    torch.manual_seed(0)
    model = MODELS["lenet5-mnist"].build().eval()
    train, test = strokes(few(60_000)), strokes(few(10_000))
    size = best_batch_size(model, test)

    def passes() -> None:
        forward(model, train, size)
        forward(model, test, size)

    ours, plain = medians(partial(fit_and_update, model, train, test), passes, repeats=5)
    what = f"fit on {len(train):,} and update on {len(test):,} images, LeNet-5, fc2, m = 6"
    return [Row(what, ours, f"their forward passes, batches of {size}", plain, at_most=1.3)]


def fit_and_update(model: nn.Module, train: Tensor, test: Tensor) -> float:
    return IDC(model, "fc2", m=6).fit(train).update(test).score


def strokes(count: int) -> Tensor:
    """Return blank images with a few blurred random dots: mostly background, like handwriting."""
    dots = (torch.rand(count, 1, 28, 28) < 0.03).float()
    dots[..., :5, :] = dots[..., -5:, :] = dots[..., :5] = dots[..., -5:] = 0
    return F.max_pool2d(dots, 3, stride=1, padding=1)


PARTS = {"fit and update": whole}
