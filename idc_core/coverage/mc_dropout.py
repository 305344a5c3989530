"""MC-dropout: scores of passes in which a network's dropout is active, from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from idc_core.base.parameters import whole_number
from idc_core.base.progress import Progress
from idc_core.errors import UnsupportedOperationError
from idc_core.lrp.session import named_layers, undisturbed
from idc_core.tracing.sources import Inputs
from idc_core.tracing.trace import collect

_UNITS = (nn.Dropout,)
_CHANNELS = (nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


def dropout_layers(model: nn.Module) -> dict[str, nn.Module]:
    """Return the modules of a network that drop units or channels, by name; those of probability 0 left out."""
    return {
        name: module
        for name, module in named_layers(model).items()
        if isinstance(module, (*_UNITS, *_CHANNELS)) and module.p > 0
    }


def dropout_scores(
    model: nn.Module,
    inputs: Inputs,
    passes: int = 20,
    seed: int = 0,
    *,
    batch_size: int | None = None,
    on_progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Return the scores of passes with dropout, float32 (passes, n, classes).

    In every pass the units that are dropped are drawn once, from the seed, the pass and the module's name, and are the
    same for all inputs: one network of the many whose mean dropout approximates (Y. Gal, Z. Ghahramani, "Dropout as a
    Bayesian Approximation", ICML 2016). So scores do not depend on batches. A module that is used twice drops the same
    units twice. Dropout that is no module (``F.dropout``, inside attention or recurrent layers) stays off.

    Parameters
    ----------
    model : Module
        Left as it was found.
    inputs : Tensor, array, Dataset or list of batches, (n, ...)
    passes : int
        How many.
    seed : int
    batch_size : int, optional
    on_progress : Progress, optional

    Raises
    ------
    UnsupportedOperationError
        If the network has no dropout.
    IdcError
        As `idc_core.tracing.trace.collect`.
    """
    whole_number("passes", passes, 1)
    whole_number("seed", seed, 0)
    if not dropout_layers(model):
        raise UnsupportedOperationError(
            "The network has no dropout module, so that all passes are alike: use an uncertainty of one pass, such as "
            "the softmax confidence."
        )
    scores = []
    for number in range(passes):
        with undisturbed(model), _dropping(model, seed, number):
            progress = None if on_progress is None else _within(on_progress, number, passes)
            scores.append(collect(model, inputs, (), batch_size=batch_size, on_progress=progress).scores)
    return np.stack(scores)


def _within(on_progress: Progress, number: int, passes: int) -> Progress:
    """Return the callback of one of several passes."""
    return lambda done, total, label: on_progress(number * total + done, passes * total, label)


@contextmanager
def _dropping(model: nn.Module, seed: int, number: int) -> Iterator[None]:
    """Drop units behind every dropout module by hooks that do not outlive the block."""
    with ExitStack() as hooks:
        for name, module in dropout_layers(model).items():
            words = np.random.SeedSequence([seed, number, crc32(name.encode())]).generate_state(1, np.uint64)
            hooks.enter_context(module.register_forward_hook(_drop(int(words[0] >> np.uint64(1)))))
        yield


def _drop(seed: int) -> Callable[..., Tensor]:
    def hook(module: nn.modules.dropout._DropoutNd, inputs: object, output: Tensor) -> Tensor:
        each = (1,) * (output.dim() - 2) if isinstance(module, _CHANNELS) else output.shape[2:]
        kept = torch.rand((1, *output.shape[1:2], *each), generator=torch.Generator().manual_seed(seed)) >= module.p
        dropped: Tensor = output * (kept.to(output) / max(1 - module.p, torch.finfo(output.dtype).tiny))
        return dropped

    return hook
