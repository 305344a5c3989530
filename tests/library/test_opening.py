"""From entries to the registries, and what is found when a file is read."""

import io
import pickle

import numpy as np
import pytest
import torch

import idc_core as idc
from idc_core import library
from idc_core.datasets import DATASETS
from idc_core.datasets.own import OwnData, OwnReader
from idc_core.errors import DataError, IdcError, ModelError
from idc_core.library import opening
from idc_core.models import MODELS
from idc_core.models.network_file import NetworkFile
from idc_core.store import documents
from tests.datasets.dataset_files import idx_bytes
from tests.library.small_files import digits_onnx, segmenting_onnx


def restart():
    """Forget what this process knows of the library, as a new process would."""
    for name in library.owners():
        MODELS.pop(name, None)
        DATASETS.pop(name, None)
    opening._entered.clear()
    opening._seen[0] = ()
    documents._read.cache_clear()


def test_a_network_is_a_name_like_any_other_also_after_a_restart(network):
    assert network.network.parameters == 784 * 12 + 12 * 10
    assert (network.network.format, network.network.layers) == ("ONNX", ("fc1", "fc2"))
    assert "my-net" not in MODELS
    for _ in range(2):
        library.enter_all()
        model = idc.load_model("my-net")
        assert model.card.label == "my net"
        assert MODELS["my-net"].default_layer == "fc1"
        assert tuple(model(torch.zeros(2, 1, 28, 28)).shape) == (2, 10)
        restart()
    library.enter_all()


def test_menus_read_no_file_and_leave_out_what_is_gone(network, monkeypatch):
    library.enter_all()
    restart()
    monkeypatch.setattr(NetworkFile, "__call__", None)
    library.enter_all()
    assert MODELS["my-net"].layers == ("fc1", "fc2")
    network.path.unlink()
    restart()
    library.enter_all()
    assert "my-net" not in MODELS
    assert "interrupted" in library.remedy(network)


def test_nothing_is_opened_again_without_a_change(network):
    library.enter_all()
    first = MODELS["my-net"]
    library.enter_all()
    library.replaced(network, check={})
    library.enter_all()
    assert MODELS["my-net"] is first
    library.rename(network, "Renamed")
    library.enter_all()
    assert MODELS["my-net"].label == "Renamed"
    library.delete(network.id)
    library.enter_all()
    assert "my-net" not in MODELS


@pytest.mark.parametrize(
    ("rows", "names", "shape"),
    [
        (["1,2,w", "2,3,z"], ("w", "z"), (2,)),
        (["1,2,x", "2,3,y", "3,4,z"], ("x", "y", "z"), (2,)),
        (["1,2,9.5", "2,3,0.5"], (), (2,)),
    ],
)
def test_what_was_found_in_a_file_is_not_told_of_another_one_at_its_path(home, tmp_path, rows, names, shape):
    def write(rows, head="a,b,label"):
        path.write_text("\n".join([head, *rows * 20]))

    path = tmp_path / "table.csv"
    write(["1,2,x", "2,3,y"])
    entry = library.understand(library.add_path(str(path), "data"))
    library.enter_all()
    assert DATASETS[entry.name].class_names == ("x", "y")
    write(rows, "a,b,target" if not names else "a,b,label")
    restart()
    library.enter_all()
    found = idc.load_dataset(entry.name)
    assert (found.class_names, found.inputs.shape[1:]) == (names, shape)
    assert found.task == ("classification" if names else "regression")


def test_the_check_is_kept(network):
    found = library.checked(network)
    assert len(found.check["trials"]) == 12
    assert found.check["mistakes"]
    assert library.ENTRIES.find(network.id).check == found.check


def forms(*names):
    return {name: library.DataForm.of(DATASETS[name]) for name in names}


def test_the_form_of_own_data_can_be_sent_to_another_process(monkeypatch):
    read = OwnReader("mine", lambda split: (np.zeros((4, 1, 3, 3), np.float32), np.arange(4) % 2), None, ())
    monkeypatch.setitem(DATASETS, "mine", OwnData("mine", "mine", "", load=read))
    form = forms("mine")["mine"]
    assert pickle.dumps(form)
    assert form == library.DataForm("classification", (1, 3, 3), ("0", "1"))


def test_data_that_fit_a_network(network):
    tried = library.fitting(network, forms("digits", "mnist", "cifar10", "20newsgroups"))
    assert [name for name, reason in tried.items() if not reason] == ["digits", "mnist"]
    assert "it cannot take inputs of 3 x 32 x 32" in tried["cifar10"]
    other = library.understand(library.add_upload(io.BytesIO(digits_onnx(7)), "seven.onnx", "network"))
    assert library.fitting(other, forms("digits")) == {"digits": "it gives 7 scores, and these data have 10 classes"}
    with pytest.raises(ModelError):
        library.connect(other, library.NetworkSettings("digits"))
    assert library.ENTRIES.find(other.id).network_settings.data == ""
    assert other.name not in MODELS


def test_a_network_with_scores_per_pixel_is_told_what_is_explained(home):
    entry = library.understand(library.add_upload(io.BytesIO(segmenting_onnx()), "seg.onnx", "network"))
    digits = forms("digits")
    assert library.fitting(entry, digits) == {
        "digits": "it gives scores of shape (n, 10, 5, 5): say which are explained"
    }
    with pytest.raises(ModelError, match="explain="):
        library.connect(entry, library.NetworkSettings("digits"))
    entry = library.replaced(entry, network_settings=library.NetworkSettings(explain="mean-pixels"))
    assert library.fitting(entry, digits) == {"digits": ""}
    entry = library.connect(entry, library.NetworkSettings("digits", explain="mean-pixels"))
    assert entry.network.layers
    restart()
    library.enter_all()
    model = idc.load_model(entry.name)
    assert tuple(model(torch.zeros(2, 1, 28, 28)).shape) == (2, 10)
    assert any("the mean of the scores over all pixels" in one for one in model.remarks)


def test_data_are_read_once_and_their_facts_kept(home, toy_data):
    entry = library.understand(library.add_upload(io.BytesIO(b"x" * 30), "some.toy", "data"))
    assert (entry.data.shape, entry.data.train, entry.data.test, entry.data.task) == (
        (1, 28, 28),
        30,
        30,
        "classification",
    )
    assert entry.data.class_names == tuple("0123456789")
    toy_data.clear()
    restart()
    library.enter_all()
    found = DATASETS["some"]
    assert (found.input_shape, found.task, len(found.class_names)) == ((1, 28, 28), "classification", 10)
    assert toy_data == []
    assert idc.load_dataset("some").fingerprint == entry.data.fingerprint


def test_a_network_goes_from_the_menus_with_its_data(network, toy_data):
    data = library.understand(library.add_upload(io.BytesIO(b"x" * 30), "some.toy", "data", owner="me"))
    library.enter_all()
    mine = library.replaced(network, owner="me")
    mine = library.connect(mine, library.NetworkSettings("some"))
    library.enter_all()
    assert library.owners() == {"some": "me", "my-net": "me"}
    assert library.hidden("you") == {"some", "my-net"}
    mine = library.share(mine)
    library.enter_all()
    assert library.hidden("you") == set()
    library.share(mine, shared=False)
    library.enter_all()
    assert library.hidden("you") == {"my-net"}
    library.delete(data.id)
    library.enter_all()
    assert library.owners() == {}


def test_errors_name_the_file_as_the_person_does(home):
    entry = library.add_upload(io.BytesIO(b"no network"), "broken.onnx", "network")
    with pytest.raises(IdcError) as error:
        library.understand(entry)
    assert "broken.onnx" in str(error.value)
    assert str(home) not in str(error.value)


@pytest.mark.parametrize("ending", [".npy", ".idx"])
def test_an_upload_is_not_read_together_with_somebody_elses(home, ending):
    """Some readers look for labels beside a file: what another visitor has uploaded is not there."""
    kept = []
    for values in (np.zeros((8, 4, 4), np.uint8), np.arange(8, dtype=np.uint8) % 2):
        stream = io.BytesIO()
        np.save(stream, values)
        content = stream.getvalue() if ending == ".npy" else idx_bytes(values)
        kept.append(library.add_upload(io.BytesIO(content), f"mine{ending}", "data", owner=f"visitor {len(kept)}"))
    inputs, targets = (one.content.removesuffix(ending) for one in kept)
    asked = library.replaced(kept[0], data_settings=library.DataSettings({"inputs": inputs, "targets": targets}))
    with pytest.raises(DataError) as error:
        library.understand(asked)
    assert targets not in str(error.value)
    assert str(error.value).startswith(f"mine{ending} is one")


def test_data_without_a_reader_are_refused(home):
    with pytest.raises(DataError, match="no data set that can be read"):
        library.add_upload(io.BytesIO(b"1"), "data.onnx", "data")
