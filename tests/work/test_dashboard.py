"""`engine` and `address` of the config file: the dashboard's passes over all inputs run on that engine."""

import numpy as np
import pytest

from idc_core.base.config import config
from idc_core.datasets import load_dataset
from idc_core.errors import SettingError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.runs import planned_traces
from idc_core.tracing.trace import collect
from idc_core.work import Here
from studio.jobs import cluster, workers
from studio.jobs.sending import packed, unpacked
from tests.work.setups import DATA, network


@pytest.fixture
def write_section(monkeypatch, tmp_path):
    """Writes the section of the config file."""
    monkeypatch.setenv("IDC_CONFIG", str(tmp_path / "config.toml"))
    return lambda text: (tmp_path / "config.toml").write_text(f"[limits]\n{text}\n", encoding="utf-8")


def test_traces_by_the_engine_of_the_config_file_are_those_of_the_dashboard(write_section):
    test = load_dataset(DATA, "test", 300)
    assert cluster.passes(network().card, network, test, 300)[1] is Here
    write_section('engine = "local"')
    told = []
    source, open_executor = cluster.passes(network().card, network, test, 300)
    assert source.live is None
    make = unpacked(packed(planned_traces(source, "fc1", open_executor).make), None)  # as workers get it
    found, expected = make(lambda *now: told.append(now)), collect(network(), test, ["fc1"], RelevanceSettings())
    assert np.array_equal(found.scores, expected.scores)
    assert np.array_equal(found.activations["fc1"], expected.activations["fc1"])
    assert np.array_equal(found.relevance["fc1"], expected.relevance["fc1"])
    assert found.shapes == expected.shapes
    assert not found.relevance["fc1"].flags.writeable
    assert told[-1][:2] == (300, 300)


def test_no_engine_runs_a_network_of_a_running_program(write_section, monkeypatch):
    write_section('engine = "local"')
    monkeypatch.setattr(workers, "alone", lambda: True)
    assert cluster.passes(network().card, network, load_dataset(DATA, "test", 10), 10)[1] is Here


@pytest.mark.parametrize(
    ("text", "said"), [("engine = 3", "engine must be a text"), ('address = "10.0.0.1:6379"', 'add engine = "ray"')]
)
def test_a_mistake_in_the_config_file_is_told(write_section, text, said):
    write_section(text)
    with pytest.raises(SettingError, match=said):
        config()
