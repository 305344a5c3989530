"""Numbers as Python, the command line and addresses give them: one check, and messages that never fail themselves."""

import numpy as np
import pytest

import idc_core as idc
from idc_core.base import ranges
from idc_core.base.parameters import _SHOWN, MOST_WHOLE, Parameter, shown, whole_number
from idc_core.datasets import Dataset
from idc_core.errors import DataError, IdcError, ModelError, SettingError
from idc_core.experiments.random_neurons import check_seeds

WHOLE = Parameter("count", "Count", "", 3, 1, 10)
REAL = Parameter("share", "Share", "", 0.5, 0, 1)
HUGE = 10**5_000


@pytest.mark.parametrize(
    "value", [0, 11, 1.0, 1.5, True, "3", None, float("nan"), float("inf"), HUGE, -HUGE, [3], {}], ids=shown
)
def test_what_is_no_whole_number_in_the_range(value):
    with pytest.raises(SettingError, match=r"^count of a test must be a whole number from 1 to 10, not .*\.$") as told:
        WHOLE.check(value, "a test")
    assert len(str(told.value)) < 200


@pytest.mark.parametrize("value", [-0.1, 1.1, True, "0.5", None, float("nan"), float("inf"), HUGE, -HUGE], ids=shown)
def test_what_is_no_number_in_the_range(value):
    with pytest.raises(SettingError, match=r"^share must be a number from 0 to 1, not .*\.$"):
        REAL.check(value)


@pytest.mark.parametrize("value", [HUGE, MOST_WHOLE + 1, 10**400], ids=shown)
def test_numbers_that_fit_no_array_are_refused_where_there_is_no_upper_end(value):
    with pytest.raises(SettingError):
        whole_number("count", value)
    with pytest.raises(SettingError):
        Parameter("count", "", "", 1).check(value)
    assert whole_number("count", MOST_WHOLE) == MOST_WHOLE


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("10", 10), ("007", 7), ("0", None), ("-1", None), ("1.0", None)]
)
def test_texts_of_whole_numbers(text, value):
    assert WHOLE.said(text) == value


@pytest.mark.parametrize(
    "text", ["", " 3", "3\n", "1_0", "\u0663", "\uff13", "0x3", "1e0", "+3", "9" * 5_000, "3\0", "x"]
)
def test_texts_that_are_no_whole_numbers(text):
    assert WHOLE.said(text) is None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.5", 0.5),
        (".5", 0.5),
        ("1.", 1.0),
        ("1e-3", 0.001),
        ("0", 0.0),
        ("1e400", None),
        ("nan", None),
        ("-0.1", None),
    ],
)
def test_texts_of_numbers(text, value):
    assert REAL.said(text) == value


def test_what_a_message_repeats_is_short():
    for value in ("x" * 100_000, HUGE, [1] * 1_000, "\0", 'a"b', float("nan"), np.arange(10_000)):
        assert 0 < len(shown(value)) <= _SHOWN
    assert shown("five") == "'five'"


class Unread(Dataset):
    """Data that must not be looked at."""

    def __getattribute__(self, name):
        pytest.fail(f"{name} was read before the settings were checked")


@pytest.mark.parametrize("m", [0, -1, 1.5, 10**9, HUGE, float("nan"), "6"], ids=shown)
def test_an_analysis_refuses_a_number_of_neurons_before_it_reads_data(m):
    data = object.__new__(Unread)
    with pytest.raises(IdcError, match=f"m must be a whole number from 1 to {ranges.M.high}"):
        idc.analyze(idc.load_model("lenet5-digits"), data, data, "fc2", m=m)


@pytest.mark.parametrize(("count", "settings", "wanted"), [(1, {}, 5), (4, {}, 5), (3, {"clusters": (3,)}, 4)])
def test_too_few_training_inputs_to_choose_clusters_from(count, settings, wanted):
    """A silhouette compares at least two clusters, one of them of two inputs."""
    model, test = idc.load_model("lenet5-digits"), idc.load_dataset("digits", "test", 5)
    with pytest.raises(DataError, match=f"too few .* at least {wanted} are needed"):
        idc.analyze(model, idc.load_dataset("digits", "train", count), test, "fc2", m=2, **settings)
    assert idc.analyze(model, idc.load_dataset("digits", "train", wanted), test, "fc2", m=2, **settings).covered


def test_inputs_of_which_a_clustering_makes_one_cluster():
    model, test = idc.load_model("lenet5-digits"), idc.load_dataset("digits", "test", 5)
    few, alike = "too few .* at least 3 are needed", "Nothing can be covered"
    for count, error, said in ((2, DataError, few), (3, ModelError, alike)):
        with pytest.raises(error, match=said):
            idc.analyze(model, idc.load_dataset("digits", "train", count), test, "fc2", m=2, clustering="dbscan")


def test_numbers_of_draws_are_refused_before_they_are_listed():
    for seeds in (10**9, HUGE, 0, -1):
        with pytest.raises(SettingError, match="seeds must be"):
            check_seeds(seeds)
