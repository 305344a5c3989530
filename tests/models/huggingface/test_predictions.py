"""Predictions of opened folders equal those of transformers' own pipelines on the same inputs."""

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

import idc_core as idc
from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.tokenizing import tokenize
from idc_core.models.formats import NETWORK_FORMATS
from idc_core.models.huggingface.reading import load_folder
from tests.models.huggingface.folders import (
    CONFIGS,
    LENGTH,
    NAMES,
    PICTURED,
    TEXTS,
    picture_folder,
    pictures,
    text_folder,
)

_PLACES = (folder / "shared" / "reference" / "lxt" for folder in Path(__file__).resolve().parents)
REFERENCE = next((place for place in _PLACES if place.exists()), Path("none"))


def scores_of_pipeline(task, folder, inputs, **settings):
    """Scores before the softmax, (n, classes), in the order of the classes."""
    run = transformers.pipeline(task, model=str(folder), device="cpu", function_to_apply="none", top_k=len(NAMES))
    found = [{one["label"]: one["score"] for one in item} for item in run(list(inputs), **settings)]
    return np.array([[scores[name] for name in NAMES] for scores in found])


@pytest.mark.parametrize("kind", CONFIGS)
def test_texts(kind, tmp_path):
    folder = text_folder(tmp_path, kind)
    expected = NETWORK_FORMATS["/"].expects(folder)
    assert expected.tokenizer == folder
    assert expected.length == LENGTH
    network = load_folder(folder)
    assert network.class_names == NAMES
    tokens = tokenize(TEXTS, expected.tokenizer, expected.length)
    with torch.no_grad():
        found = network(torch.from_numpy(tokens.ids)).logits
    told = scores_of_pipeline("text-classification", folder, TEXTS, truncation=True, max_length=LENGTH)
    assert np.ptp(told, 0).min() > 1e-3, "scores must differ between texts"
    np.testing.assert_allclose(found, told, atol=1e-5, rtol=0)


# LLaMA normalises and turns positions in float32 whatever its weights are: its last digits are the processor's.
@pytest.mark.parametrize(("kind", "most"), [("bert", 1e-12), ("gpt2", 1e-12), ("llama", 1e-6)])
@pytest.mark.skipif(not REFERENCE.exists(), reason="the reference folders are not there")
def test_published_scores(kind, most):
    expected = np.load(REFERENCE / kind / "expected.npz")
    network = load_folder(REFERENCE / kind)
    with torch.no_grad():
        found = network(torch.from_numpy(expected["ids"])).logits
    np.testing.assert_allclose(found, expected["scores"], atol=most, rtol=0)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("kind", PICTURED)
def test_pictures_are_brought_to_their_size_as_the_processor_does(kind, tmp_path):
    folder = picture_folder(tmp_path, kind)
    wanted = NETWORK_FORMATS["/"].expects(folder)
    assert (wanted.size, wanted.channels) == ((32, 32), 3)
    network = load_folder(folder)
    given = [*pictures(1, (47, 71)), *pictures(1, (80, 33)), *pictures(1, (20, 24))]
    processor = PictureProcessor(wanted.processor, wanted.channels)
    fitted = [processor(np.asarray(picture).transpose(2, 0, 1), "picture") for picture in given]
    with torch.no_grad():
        found = network(torch.from_numpy(np.stack(fitted)).float() / 255).logits
    told = scores_of_pipeline("image-classification", folder, given)
    np.testing.assert_allclose(found, told, atol=1e-5, rtol=0)


def test_class_folders_are_matched_with_the_labels_of_the_folder(tmp_path):
    folder = picture_folder(tmp_path / "net", "vit")
    given = pictures(12)
    for number, picture in enumerate(given):
        place = tmp_path / "photos" / ("train" if number % 2 else "test") / sorted(NAMES)[number // 2 % 3]
        place.mkdir(parents=True, exist_ok=True)
        picture.save(place / f"{number}.png")
    network = idc.load_model(folder, data=tmp_path / "photos")
    data = idc.load_dataset(network.card.dataset, "test")
    assert data.class_names == tuple(sorted(NAMES))
    assert data.class_names != NAMES
    with torch.no_grad():
        found = network(torch.from_numpy(np.array(data.inputs[:])))
    shown = [
        Image.fromarray(np.rint(255 * one).astype(np.uint8).transpose(1, 2, 0)) for one in np.array(data.inputs[:])
    ]
    told = scores_of_pipeline("image-classification", folder, shown)
    np.testing.assert_allclose(found, told[:, [NAMES.index(name) for name in data.class_names]], atol=1e-5, rtol=0)
    assert "0 'good' is 'good'" in next(one for one in network.remarks if one.startswith("Outputs and classes"))
