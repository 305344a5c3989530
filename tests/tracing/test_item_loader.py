"""A torch Dataset is read item by item in its order, by any number of processes, with the same numbers."""

import os

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset

from idc_core.coverage.idc import IDC
from idc_core.lrp.rules import RelevanceSettings
from idc_core.tracing.trace import collect
from tests.analysis.test_layer_sweep import TRAIN, network


class Items(Dataset):
    def __init__(self, folder):
        self.folder = folder

    def __len__(self):
        return len(TRAIN)

    def __getitem__(self, place):
        (self.folder / f"{place}-{os.getpid()}").touch()
        return torch.from_numpy(TRAIN.inputs[place].copy()), int(TRAIN.targets[place])


class Stream(IterableDataset):
    def __iter__(self):
        yield from (TRAIN.inputs[place] for place in range(len(TRAIN)))


@pytest.mark.parametrize("loaders", [0, 2])
def test_every_item_is_read_once_in_its_order(tmp_path, monkeypatch, loaders):
    monkeypatch.setattr("idc_core.tracing.sources.MOST_INPUTS", 16)
    home, read = tmp_path / "home", tmp_path / "read"
    home.mkdir(), read.mkdir()
    (home / "config.toml").write_text(f"[limits]\nloaders = {loaders}\n", encoding="utf-8")
    monkeypatch.setenv("IDC_HOME", str(home))
    model, told = network(), []
    batches = [TRAIN.inputs[start : start + 16] for start in range(0, len(TRAIN), 16)]
    expected = collect(model, batches, ["hidden"], RelevanceSettings())
    before = torch.get_rng_state()
    found = collect(
        model, Items(read), ["hidden"], RelevanceSettings(), on_progress=lambda *step: told.append(step[:2])
    )
    assert np.array_equal(found.activations["hidden"], expected.activations["hidden"])
    assert np.array_equal(found.relevance["hidden"], expected.relevance["hidden"])
    assert told[-1] == (len(TRAIN), len(TRAIN))
    assert torch.equal(before, torch.get_rng_state())
    names = [path.name.split("-") for path in read.iterdir()]
    assert sorted(int(place) for place, _ in names) == list(range(len(TRAIN)))
    assert len({process for _, process in names}) == max(1, loaders)
    assert (str(os.getpid()) in {process for _, process in names}) == (loaders == 0)


def test_idc_takes_them(tmp_path):
    plain = IDC(network(), "hidden", 4).fit(TRAIN.inputs).update(TRAIN.inputs)
    for items in (Items(tmp_path), Stream()):
        found = IDC(network(), "hidden", 4).fit(items).update(items)
        assert found.important.tolist() == plain.important.tolist()
        assert found.covered == plain.covered
        np.testing.assert_allclose(found.importance, plain.importance, rtol=1e-5, atol=1e-6)
