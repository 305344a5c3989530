"""Recipes of suites as addresses hold them: read as they are written, and refused where they cannot be read."""

import pytest

import idc_core as idc
from studio.jobs import suite_addresses
from studio.jobs.suite_addresses import SuiteAddress, parse


@pytest.mark.parametrize(
    "recipe",
    [
        SuiteAddress("noise"),
        SuiteAddress("guided", {"pixels": 15, "deviation": 0.25}, seed=3),
        SuiteAddress("rotation", {"degrees": -12.5}, answers="wrong"),
        SuiteAddress("cw", {"confidence": 2.0, "learning_rate": 1e-05}, classes=(1, 4), least=0.1, most=0.95),
        SuiteAddress("original", answers="right"),
    ],
)
def test_recipes_are_read_as_they_are_written(recipe):
    assert parse(recipe.text) == recipe
    assert not set(recipe.text) & set(f",{suite_addresses.TOGETHER}")


@pytest.mark.parametrize("text", ["noise~seed=x", "noise~answers=maybe", "noise~sure=0.9to0.1", "noise~sure=-1to1"])
def test_what_cannot_be_read_is_no_suite(text):
    with pytest.raises(idc.errors.SettingError):
        parse(text)
