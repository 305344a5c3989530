"""One field per option: every way in takes it, and every result is found and listed by it."""

import argparse
from dataclasses import fields
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from idc_core import IDC
from idc_core.analysis.layer_sweep import sweep
from idc_core.cli import analyze as command
from idc_core.coverage.idc_settings import CONTROLS, OPTIONS, IdcOptions, IdcSettings
from idc_core.errors import SettingError
from idc_core.experiments.rq6 import RQ6Settings, prepare_rq6
from idc_core.gate.settings import Settings
from idc_core.lrp.rules import RelevanceSettings
from idc_core.runs import PlannedAnalysis

OTHER = {"priority": "absolute", "clusters": (2, 5), "drop_zeros": True, "clustering": "dbscan", "original": True}
with torch.random.fork_rng():
    torch.manual_seed(0)  # other weights may activate no neuron
    NETWORK = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
OF = SimpleNamespace(fingerprint="", name="", label="", task="", dataset="", class_names=())


@pytest.mark.parametrize("name", [one.name for one in OPTIONS])
def test_an_option_is_taken_everywhere(name):
    changed = {name: OTHER[name]}
    settings = IdcSettings.of(**changed)
    assert settings.unusual == changed
    assert IDC(NETWORK, "0", 2, **changed).idc == settings
    assert IDC(NETWORK, "0", 2, settings).idc is settings
    assert IDC(NETWORK, "0", 2, **changed)._settings()[name] in (OTHER[name], [2, 5])
    assert Settings(model="x", **changed).idc == settings
    assert RQ6Settings("0", **changed).options == settings.options
    key = PlannedAnalysis(OF, OF, OF, "0", 2, settings).key
    assert key != PlannedAnalysis(OF, OF, OF, "0", 2).key
    assert (name, OTHER[name]) in key
    parser = argparse.ArgumentParser()
    command.add_options(parser)
    flag = f"--{name.replace('_', '-')}"
    said = [flag] if OTHER[name] is True else [flag, "2,5" if name == "clusters" else OTHER[name]]
    assert command._chosen(parser.parse_args(said)) == settings
    assert command._chosen(parser.parse_args([])) == IdcSettings.of()


def test_all_options_are_looked_at():
    assert list(OTHER) == [one.name for one in OPTIONS] == [one.name for one in fields(IdcOptions)]
    assert all(one.help for one in OPTIONS)
    usual = {one.name: one.default for one in OPTIONS}
    assert all(one.text(usual[one.option]) == one.default for one in CONTROLS.values())


def test_parameters_go_where_they_belong():
    found = IdcSettings.of("gamma", gamma=0.5, clusters=3)
    assert found.relevance == RelevanceSettings("gamma", gamma=0.5)
    assert found.clusters == (3,)
    assert found.unusual == {"rule": "gamma", "gamma": 0.5, "clusters": (3,)}
    with pytest.raises(SettingError, match="clusters belongs into the IdcSettings"):
        IdcSettings.of(found, clusters=4)
    with pytest.raises(SettingError, match="zeal"):
        IDC(NETWORK, "0", 2, zeal=True)
    assert IDC(NETWORK, "0", 2, found).fit(torch.rand(20, 4, generator=torch.Generator().manual_seed(0))).total > 1


def test_what_does_not_follow_the_original_program_says_so():
    with pytest.raises(SettingError, match="A sweep follows the method, not the original program: leave original out"):
        sweep(NETWORK, None, {"tests": None}, ["0"], [2], original=True)
    with pytest.raises(SettingError, match="RQ6 follows the method"):
        prepare_rq6(NETWORK, None, None, None, RQ6Settings("0", original=True))


def test_a_parameter_that_is_none_is_not_given():
    assert IdcSettings.of(settings := IdcSettings.of(clusters=3), epsilon=None) is settings
