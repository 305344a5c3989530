"""Networks with units that compute a known thing exactly, and data for them."""

import numpy as np
import torch
from torch import nn

from idc_core.datasets import Dataset
from idc_core.inspection import Hypothesis


def texts(count=400, symbols=12, letters=9, seed=0, padded=False):
    random = np.random.default_rng(seed)
    inputs = random.integers(1, letters, (count, symbols))
    if padded:
        inputs[np.arange(symbols) >= random.integers(4, symbols + 1, count)[:, None]] = 0
    targets = random.integers(0, 3, count)
    return Dataset(
        "letters",
        "test",
        inputs.astype(np.int64),
        targets,
        ("a", "b", "c"),
        "classification",
        ("", *"abcdefghijklmnop"[: letters - 1]),
        (),
        np.arange(count),
        "0" * 16,
    )


class Table(nn.Module):
    """Looks every symbol up: unit u of `units` is column u of the table, at every symbol."""

    def __init__(self, columns):
        super().__init__()
        self.units = nn.Embedding.from_pretrained(torch.tensor(columns, dtype=torch.float32))
        with torch.random.fork_rng():
            torch.manual_seed(0)  # some are made at import, where no test's seed holds
            self.logits = nn.Linear(columns.shape[1], 3)

    def forward(self, inputs):
        return self.logits(self.units(inputs).mean(1))


def is_letter(*wanted):
    return Hypothesis(
        "is " + ",".join(map(str, wanted)), "test", "binary", lambda records: np.isin(records.inputs, wanted)
    )


def letter_number():
    return Hypothesis("number", "test", "number", lambda records: records.inputs.astype(float))


def letter_class(letters=9):
    return Hypothesis("letter", "test", "classes", lambda records: records.inputs, letters)


def noisy_table(letters=9, units=7, seed=1):
    return np.random.default_rng(seed).normal(size=(letters, units))
