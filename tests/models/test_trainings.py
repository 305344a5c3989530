"""Trainings from other seeds: made once, kept, and told apart by recipe and seed."""

import numpy as np
import pytest

from idc_core.errors import ModelError
from idc_core.models import Recipe
from idc_core.models import trainings as module
from idc_core.models.trainings import load_training

SHORT = Recipe("adadelta", 1.0, batch=256, epochs=1, schedule="constant")


def test_a_training_is_made_once_and_found_again(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    first, other = (load_training("lenet1-digits", seed, SHORT) for seed in (0, 1))
    assert first.card.fingerprint != other.card.fingerprint
    assert (other.card.seed, other.card.recipe["optimizer"]) == (1, "adadelta")
    monkeypatch.setattr(module, "train", lambda *_, **__: pytest.fail("trained again"))
    again = load_training("lenet1-digits", 0, SHORT)
    assert again.card.fingerprint == first.card.fingerprint
    with pytest.raises(BaseException, match="trained again"):
        load_training("lenet1-digits", 0, Recipe("rmsprop", 1e-4, batch=256, epochs=1))


def test_a_published_network_needs_a_recipe(tmp_path, monkeypatch):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))
    with pytest.raises(ModelError, match="no recipe"):
        load_training("deepimportance-lenet1", 0)


def test_the_optimisers_of_the_paper_take_steps():
    import torch

    from idc_core.models.recipes import OPTIMIZERS, SCHEDULES

    for name in ("adadelta", "rmsprop"):
        weight = torch.nn.Parameter(torch.tensor([1.0]))
        (weight**2).sum().backward()
        OPTIMIZERS[name]([weight], 0.01, 0.0).step()
        assert 0 < weight.item() < 1
    assert np.ptp([SCHEDULES["constant"](step, 10) for step in range(10)]) == 0
