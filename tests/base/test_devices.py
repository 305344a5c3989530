"""Where networks run: names of devices, where they are said, and what a GPU is told. No GPU is at hand here."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from idc_core import load_model
from idc_core.base import devices
from idc_core.cli import main
from idc_core.errors import SettingError
from idc_core.lrp.session import undisturbed


@pytest.fixture
def two_gpus(monkeypatch):
    """Let this machine seem to have two GPUs."""
    monkeypatch.setattr(devices, "available", lambda: ("cpu", "cuda:0", "cuda:1"))


@pytest.mark.parametrize(
    ("name", "found"), [("cpu", "cpu"), ("auto", "cuda:0"), ("cuda", "cuda:0"), ("cuda:1", "cuda:1"), ("", "cpu")]
)
def test_a_name_is_a_device(two_gpus, name, found):
    assert str(devices.choose(name)) == found


def test_auto_is_the_processor_where_there_is_no_other(monkeypatch):
    monkeypatch.setattr(devices, "available", lambda: ("cpu",))
    assert devices.choose("auto") == torch.device("cpu")


@pytest.mark.parametrize("name", ["cuda:2", "mps", "gpu", "cuda:-1", "meta"])
def test_a_device_that_is_not_there_is_refused(two_gpus, name):
    with pytest.raises(SettingError, match=r"must be one of auto, cpu, cuda:0, cuda:1, .* not '"):
        devices.choose(name)
    with pytest.raises(SettingError, match="must be one of"):
        load_model("lenet5-digits", device=name)


def test_the_config_file_names_a_device(two_gpus, monkeypatch, tmp_path):
    config = tmp_path / "config.toml"
    monkeypatch.setenv("IDC_CONFIG", str(config))
    config.write_text('[limits]\ndevice = "cuda:1"\n')
    assert str(devices.choose()) == "cuda:1"
    assert str(devices.choose("cpu")) == "cpu"
    config.write_text('[limits]\ndevice = "mps"  # another one\n')
    with pytest.raises(SettingError, match=r"The device of .*config\.toml must be one of"):
        devices.choose()
    config.write_text("[limits]\ndevice = 1\n")
    with pytest.raises(SettingError, match="device must be a text"):
        devices.choose()


def test_processes_started_within_a_choice_inherit_it(two_gpus, monkeypatch):
    monkeypatch.delenv(devices.VARIABLE, raising=False)
    with devices.using("cuda:1"):
        assert str(devices.choose()) == "cuda:1"
        code = f"import os; print(os.environ[{devices.VARIABLE!r}])"
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "cuda:1"
    assert devices.VARIABLE not in os.environ


def test_the_command_line_refuses_a_device_before_any_work(monkeypatch, capsys):
    monkeypatch.setattr(devices, "available", lambda: ("cpu",))
    assert main(["analyze", "--device", "cuda"]) == 2
    assert "must be one of auto, cpu, which are on this machine, not 'cuda'" in capsys.readouterr().err
    assert main(["analyze", "--device", "tpu"]) == 2
    assert "auto, cpu, cuda, cuda:1 or mps" in capsys.readouterr().err


def test_the_command_line_opens_networks_where_it_says(monkeypatch):
    chosen = []
    monkeypatch.setattr("idc_core.cli.analyze.run", lambda arguments: chosen.append(str(devices.choose())) or 0)
    monkeypatch.setattr(devices, "available", lambda: ("cpu", "mps"))
    assert main(["analyze", "--device", "auto"]) == 0
    assert main(["analyze"]) == 0
    assert chosen == ["mps", "cpu"]


def test_a_gpu_sums_in_whole_float32_and_is_left_as_it_was(monkeypatch):
    """A convolution of float32 may else be computed with 10 bits of mantissa."""
    cudnn, before = torch.backends.cudnn, (torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic)
    network = nn.Sequential(nn.Linear(2, 2))
    with undisturbed(network):
        assert (cudnn.allow_tf32, cudnn.deterministic) == before
    monkeypatch.setattr(devices, "device_of", lambda model: torch.device("cuda:0"))
    first, second = devices.exact(network), devices.exact(nn.Linear(2, 2))
    with undisturbed(network):
        assert (cudnn.allow_tf32, cudnn.deterministic) == (False, True)
    assert (cudnn.allow_tf32, cudnn.deterministic) == before
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)  # the other pass, in another thread, goes on
    assert (cudnn.allow_tf32, cudnn.deterministic) == (False, True)
    second.__exit__(None, None, None)
    assert (cudnn.allow_tf32, cudnn.deterministic) == before


def test_torch_is_not_loaded_to_see_that_there_is_no_gpu():
    if any(Path(one).exists() for one in devices._DRIVERS) or sys.platform != "linux":
        pytest.skip("There may be one here.")
    code = "import sys; from idc_core.base import devices; print(devices.available(), 'torch' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "('cpu',) False"
