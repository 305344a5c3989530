"""What the tests of perturbations share: LeNet-5 on digits, and a few of its tests."""

import numpy as np
import pytest

import idc_core as idc

COUNT = 12
"""How many digits are attacked."""


@pytest.fixture(scope="session")
def lenet():
    return idc.load_model("lenet5-digits")


@pytest.fixture(scope="session")
def digits():
    return idc.load_dataset("digits", limit=COUNT)


@pytest.fixture
def pictures():
    """Random pictures, two colours, not square."""
    return np.random.default_rng(1).random((7, 2, 9, 12)).astype(np.float32)
