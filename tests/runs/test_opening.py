"""Which page opens a run: by the address that a page kept with it, else by what its settings say."""

from urllib.parse import urlencode

import pytest

from idc_core.runs import RUN_KINDS, ErrorSettings, Run
from idc_core.store import Facts
from studio.runs.opening import page_of, parameters_of
from studio.shell.pages import PAGES

SETUP = {"model": "net", "data": "digits", "layer": "fc"}


def run(of, /, **settings):
    told = {"network": "net", "tests": "digits", "layer": "fc", **settings}
    return Run("a" * 32, Facts(of, "1", "2026-01-01T00:00:00+00:00", 0.1, told, {}))


def test_every_kind_that_the_engine_has_is_opened_by_one_page():
    assert sorted(kind for page in PAGES.values() for kind in page.opens) == sorted(RUN_KINDS)


@pytest.mark.parametrize("kind", ["analysis", "attack-runs", "class-errors"])
def test_what_a_page_or_an_older_version_kept_is_said_again(kind):
    kept = {"model": "net", "data": "own data", "attack": "bim", "groups": "a: b, c"}
    older = run(kind, m=6, address=urlencode(kept))
    assert parameters_of(older) == kept
    assert page_of(older) == next(name for name, page in PAGES.items() if kind in page.opens)
    assert page_of(run(kind, m=6, address="")) == ""


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"m": 6}, {"m": "6"}),
        ({"m": 3, "clusters": [2], "drop_zeros": True}, {"m": "3", "k": "2", "zeros": "dropped"}),
        ({"m": 12, "clustering": "dbscan"}, {"m": "12", "clustering": "dbscan"}),
        ({"m": 13}, None),
        ({"m": 6, "clusters": [2, 3]}, None),
        ({"m": 6, "original": True}, None),
        ({"m": 6, "rule": "gamma", "gamma": 0.5}, None),
        ({"m": 6, "part_of_data": True}, None),
    ],
)
def test_an_analysis_is_opened_where_the_dashboard_has_its_settings(settings, said):
    assert parameters_of(run("analysis", **settings)) == ({} if said is None else SETUP | said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"counted_layers": ["a", "b"]}, {"counted": "a,b"}),
        ({"counted_layers": ["a"], "groups": "few: 1, 2"}, {"counted": "a", "groups": "few: 1, 2"}),
        ({"threshold": 0.3}, None),
        ({"kind": "type1"}, None),
        ({"part_of_data": True}, None),
    ],
)
def test_class_errors_are_opened_where_all_but_layers_and_groups_is_usual(settings, said):
    found = parameters_of(run("class-errors", **{**ErrorSettings().told, **settings}))
    assert found == ({} if said is None else SETUP | said)


@pytest.mark.parametrize("kind", ["analysis", "class-errors"])
def test_whatever_an_imported_run_says_it_has_an_address_or_none(kind):
    usual = {"m": 6} if kind == "analysis" else ErrorSettings().told
    read = {*usual, "m", "clusters", "drop_zeros", "clustering", "rule", "groups", "part_of_data", "address"}
    junk = [None, "", "6", -1, 1.5, float("nan"), 10**30, True, [], ["a"], [[1]], {"a": 1}]
    for name in read:
        without = {key: value for key, value in usual.items() if key != name}
        for settings in (without, *(without | {name: value} for value in junk)):
            parts = parameters_of(run(kind, **settings))
            assert all(isinstance(part, str) for part in parts.values()), settings
