"""Settings of a network on the Library page that its file asks for: inputs held at a number, a layout of scores."""

import io

import numpy as np
import onnx
import torch
from onnx import numpy_helper

import idc_core as idc
from idc_core import library
from idc_core.datasets import load_dataset
from tests.library.small_files import held_onnx, time_first_onnx
from tests.library.test_opening import restart
from tests.pages.reading import open_page
from tests.pages.test_library_page import add, connected, only_entry


def submit(app, label):
    next(one for one in app.button if one.label == label).click().run()
    assert not app.exception


def opened_again(entry):
    """Two pictures of the digits, and the scores of an entry's network for them as it is after a restart."""
    restart()
    library.enter_all()
    pictures = np.asarray(load_dataset("digits").inputs[:2])
    with torch.no_grad():
        return pictures, idc.load_model(entry.name)(torch.from_numpy(pictures)).numpy()


def weights(content):
    return (numpy_helper.to_array(one) for one in onnx.load_from_string(content).graph.initializer[:2])


def test_inputs_are_held_at_a_number_by_which_a_file_can_be_read(home):
    """Its branch depends on a rate: without it, the file cannot be read at all."""
    path = home / "held.onnx"
    path.write_bytes(held_onnx())
    app = add(open_page("library"), path)
    assert "branch that depends" in app.error[0].value
    key = f"library-hold-{only_entry().id}"
    for given, said in (
        ("rate", "hold must be NAME=NUMBER, such as state=0, not 'rate'"),
        ("speed=1", "no input 'speed' to hold; its inputs are x, state, rate"),
    ):
        app.text_input(key=key).input(given)
        submit(app, "Hold these inputs")
        assert said in " ".join(one.value for one in app.error)
        assert only_entry().network_settings.held == {}
    app.text_input(key=key).input("rate=16000, state=0.25")
    submit(app, "Hold these inputs")
    assert not app.error
    assert "Inputs held at a number: rate=16000, state=0.25" in [one.label.replace("\\", "") for one in app.expander]
    app.selectbox(key=f"library-data-{only_entry().id}").select("digits").run()
    app.button(key=f"library-connect-{only_entry().id}").click().run()
    assert not app.exception
    assert not app.error
    assert only_entry().network_settings.held == {"rate": 16000, "state": 0.25}
    pictures, scores = opened_again(only_entry())
    first, second = weights(held_onnx())
    expected = np.maximum(pictures.reshape(2, -1) @ first + 0.25, 0) @ second
    assert np.allclose(scores, expected, atol=1e-5)
    app.text_input(key=key).input("rate=16000, state=-0.5")
    submit(app, "Hold these inputs")
    assert not app.error
    assert not np.allclose(opened_again(only_entry())[1], expected, atol=1e-5)


def test_the_layout_of_scores_with_three_axes_is_said(home):
    entry = library.understand(library.add_upload(io.BytesIO(time_first_onnx()), "rows.onnx", "network"))
    app = open_page("library", entry=entry.id)
    assert [one.key for one in app.text_input if one.key == f"library-hold-{entry.id}"] == []  # it has one input
    app.selectbox(key=f"library-explained-{entry.id}").select("mean-tokens")
    app.selectbox(key=f"library-output_layout-{entry.id}").select("time-first")
    submit(app, "Explain these scores")
    app.selectbox(key=f"library-data-{entry.id}").select("digits").run()
    app.button(key=f"library-connect-{entry.id}").click().run()
    assert not app.exception
    assert not app.error
    assert only_entry().network_settings.output_layout == "time-first"
    pictures, scores = opened_again(only_entry())
    first, second = weights(time_first_onnx())
    assert np.allclose(scores, (np.maximum(pictures[:, 0] @ first, 0) @ second).mean(1), atol=1e-5)
    for layout, fits in (("batch-first", False), ("time-first", True)):  # 28 rows of pictures are not 28 pictures
        app.selectbox(key=f"library-output_layout-{entry.id}").select(layout)
        submit(app, "Explain these scores")
        assert bool(app.error) is not fits
    keys = [one.key for one in open_page("library", entry=connected().id).selectbox]
    assert not [key for key in keys if key and key.startswith("library-output_layout")]  # its scores are (n, classes)
