"""Commands take what the library holds by the names that people gave it."""

import io

import pytest

from idc_core import library
from idc_core.cli import _make_parser, main
from idc_core.datasets import DATASETS
from idc_core.models import MODELS
from idc_core.models.network_file import NetworkFile
from tests.library.small_files import digits_onnx


def told(*words):
    return _make_parser().parse_args(list(words))


def refused(capsys, *words):
    assert main(list(words)) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    return said


def test_networks_and_data_are_known_by_label_and_by_name(network, toy_data, tmp_path, monkeypatch):
    (tmp_path / "noise.toy").write_bytes(bytes(20))
    library.understand(library.add_path(str(tmp_path / "noise.toy"), "data", label="Some noise: 20"))
    library.connect(library.rename(network, "My net"), library.NetworkSettings("digits", "fc2"))
    assert "my-net" not in MODELS
    monkeypatch.chdir(tmp_path)
    (tmp_path / "My net").mkdir()  # a path of the same name is meant by ./My net
    for label in ("My net", "my-net"):
        arguments = told("analyze", "--model", label, "--data", "Some noise: 20")
        assert (arguments.model, arguments.data) == ("my-net", "some-noise-20")
    assert told("differential", "--models", "lenet5-digits", "My net:6").models == ["lenet5-digits", "my-net:6"]
    assert DATASETS["some-noise-20"].input_shape == (1, 28, 28)


def test_a_command_runs_on_it_and_lists_it(network, capsys, monkeypatch):
    assert main(["check-network", "--model", "my net"]) == 0
    assert "9,528" in capsys.readouterr().out
    monkeypatch.setattr(NetworkFile, "__call__", None)  # a list reads no file
    assert main(["list", "models"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split() == ["my-net", "digits", "[fc1]", "fc2"]


def test_what_cannot_be_opened_is_said_with_its_remedy(network, capsys):
    raw = io.BytesIO(digits_onnx(seed=1))
    other = library.add_upload(raw, "my net.onnx", "network")
    said = refused(capsys, "analyze", "--model", "my net")
    assert "names 2 networks of the library, all called 'my net': give my-net or my-net-2;" in said
    assert told("analyze", "--model", "my-net").model == "my-net"
    assert "has not been read yet: open its details" in refused(capsys, "analyze", "--model", "my-net-2")
    library.understand(other)
    assert "has no data yet: choose them on the Library page" in refused(capsys, "analyze", "--model", "my-net-2")
    assert "There is no dataset 'my net'; the datasets are digits," in refused(capsys, "analyze", "--data", "my net")
    unknown = refused(capsys, "analyze", "--model", "nobody")
    assert "There is no model 'nobody'; the models are lenet1-digits," in unknown
    assert "my-net, my-net-2; see" in unknown
    network.path.unlink()
    library.opening._seen[0] = ()
    library.rename(network, "Gone")
    MODELS.pop("my-net", None)
    with pytest.raises(Exception, match="which cannot be opened: its file is missing"):
        told("analyze", "--model", "Gone")
