"""Pictures are what the image processor of a folder makes of them, to 1e-6, whatever its class and settings."""

import json

import numpy as np
import pytest
import torch
import transformers
from transformers.models.auto import modeling_auto
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES

from idc_core.datasets.own import DataFile
from idc_core.datasets.picture_processor import PictureProcessor
from idc_core.datasets.pictures import read_pictures
from idc_core.datasets.preparation import Preparation
from idc_core.errors import DataError, ModelError
from idc_core.models.huggingface.configuration import read_configuration
from idc_core.models.huggingface.expecting import expects, processor_of
from idc_core.models.huggingface.reading import _scaling, load_folder
from idc_core.models.wrapping import Before
from tests.models.huggingface.folders import picture_folder, pictures

WHOLE, SHORTER = {"height": 32, "width": 32}, {"shortest_edge": 32}
SMALLER = {"height": 28, "width": 28}
CONFIG = {"architectures": ["ViTForImageClassification"], "model_type": "vit", "id2label": {0: "a", 1: "b"}}
HEADS = ("IMAGE_CLASSIFICATION", "OBJECT_DETECTION", "SEMANTIC_SEGMENTATION")
CLASSES = sorted(
    {
        found["pil"].removesuffix("Pil")
        for head in HEADS
        for kind in getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING_NAMES")
        if (found := IMAGE_PROCESSOR_MAPPING_NAMES.get(kind, {})).get("pil")
    }
)
REFUSED = {
    "Siglip2ImageProcessor": "cuts pictures into patches",
    "ImageGPTImageProcessor": "Clusters must be provided",
    "TimmWrapperImageProcessor": "of the class 'TimmWrapperImageProcessor'",
}
"""Classes of which pictures and scaling cannot be told apart, or which need another package, and what is said."""

SAID = {
    "nothing": {},
    "a crop": {"do_center_crop": True, "crop_size": SMALLER},
    "another mean": {"image_mean": [0.1, 0.5, 0.7], "image_std": [0.2, 0.5, 1.5]},
    "no mean": {"do_normalize": False},
    "pixels of 0 to 255": {"do_rescale": False, "image_mean": [120.0] * 3, "image_std": [60.0] * 3},
    "another factor": {"rescale_factor": 1 / 127.5},
    "no resizing": {"do_resize": False, "do_center_crop": True, "crop_size": WHOLE},
    "grey made RGB": {"do_convert_rgb": True},
    **{f"filter {number}": {"resample": number} for number in range(6)},
}

ODD = {
    "a crop larger than DeiT's picture": ("DeiTImageProcessor", {"size": SMALLER, "crop_size": WHOLE}),
    "a crop larger than BiT's picture": (
        "BitImageProcessor",
        {"size": {"shortest_edge": 31}, "crop_size": {"height": 36, "width": 36}},
    ),
    "ConvNeXt's share": ("ConvNextImageProcessor", {"size": SHORTER, "crop_pct": 0.8}),
    "EfficientNet with an offset": (
        "EfficientNetImageProcessor",
        {"size": WHOLE, "rescale_offset": True, "rescale_factor": 1 / 127.5},
    ),
    "EfficientNet without top": ("EfficientNetImageProcessor", {"size": WHOLE, "include_top": False}),
    "Perceiver's small middle": (
        "PerceiverImageProcessor",
        {"size": SMALLER, "crop_size": {"height": 49, "width": 49}},
    ),
    "MobileViT with channels as they are": (
        "MobileViTImageProcessor",
        {"size": SHORTER, "crop_size": WHOLE, "do_flip_channel_order": False},
    ),
    "an old name": ("ViTFeatureExtractor", {"size": 24}),
    "a name of torchvision's edition": ("CLIPImageProcessorFast", {"size": SHORTER, "crop_size": WHOLE}),
}
SIZES = ((47, 71), (80, 33), (20, 24), (33, 33), (5, 9))


def folder_of(folder, kind, settings, file="preprocessor_config.json"):
    """Write what a folder says of its processor, and a configuration of a network."""
    key = "feature_extractor_type" if kind.endswith("Extractor") else "image_processor_type"
    content = {key: kind, **settings}
    (folder / file).write_text(json.dumps({"image_processor": content} if file.startswith("processor") else content))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    return folder


def compare(folder):
    """Compare what a network gets of some pictures with what transformers makes of them; return the processor."""
    processor = processor_of(read_configuration(folder))
    theirs = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    before = Before(_scaling(processor))
    for picture in (pictures(1, size)[0] for size in SIZES):
        expected = theirs(picture, return_tensors="np")["pixel_values"]
        pixels = processor(np.asarray(picture).transpose(2, 0, 1), "The picture")
        found = before(torch.nn.Identity(), (torch.from_numpy(pixels[None]).float() / 255,))[0].numpy()
        largest = max(1.0, float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6 * largest)
    return processor


@pytest.mark.sampled(12)
@pytest.mark.parametrize("said", SAID)
@pytest.mark.parametrize("kind", [kind for kind in CLASSES if kind not in REFUSED])
def test_a_network_gets_what_its_processor_makes(kind, said, tmp_path):
    theirs = transformers.AutoImageProcessor.from_pretrained(folder_of(tmp_path, kind, {}), backend="pil")
    size = theirs.to_dict().get("size") or {}
    size = dict.fromkeys(size, 64) if said != "nothing" or max(size.values(), default=0) > 300 else {}
    compare(folder_of(tmp_path, kind, ({"size": size} if size else {}) | SAID[said]))


@pytest.mark.parametrize("name", ODD)
def test_odd_values(name, tmp_path):
    compare(folder_of(tmp_path, *ODD[name]))


def test_every_class_is_followed_or_refused_by_name(tmp_path):
    assert set(REFUSED) <= set(CLASSES)
    for kind, said in REFUSED.items():
        with pytest.raises(ModelError, match=said):
            expects(folder_of(tmp_path, kind, {}))
    with pytest.raises(ModelError, match="class 'NoneSuchImageProcessor'"):
        expects(folder_of(tmp_path, "NoneSuchImageProcessor", {"size": WHOLE}))


def test_a_processor_inside_that_of_several_inputs_is_read(tmp_path):
    settings = {"size": SHORTER, "crop_size": SMALLER, "image_mean": [0.3] * 3}
    folder_of(tmp_path, "CLIPImageProcessor", settings, "processor_config.json")
    compare(tmp_path)
    assert expects(tmp_path) == Preparation(size=(28, 28), channels=3, processor=tmp_path)


def test_numbers_of_the_scaling_are_those_of_the_folder(tmp_path):
    settings = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225], "size": WHOLE}
    scaling = _scaling(processor_of(read_configuration(folder_of(tmp_path, "ViTImageProcessor", settings))))
    assert (scaling.mean, scaling.deviation, scaling.factor) == ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), 1)
    settings = {"do_rescale": False, "image_mean": [120] * 3, "image_std": [60] * 3, "size": WHOLE}
    scaling = _scaling(processor_of(read_configuration(folder_of(tmp_path, "ViTImageProcessor", settings))))
    assert (scaling.mean, scaling.deviation, scaling.factor) == ((120,) * 3, (60,) * 3, 255)


def write(folder, sizes):
    for number, size in enumerate(sizes):
        (folder / "ab"[number % 2]).mkdir(parents=True, exist_ok=True)
        pictures(1, size)[0].save(folder / "ab"[number % 2] / f"{number}.png")
    return folder


def test_pictures_in_folders_and_arrays(tmp_path):
    folder = picture_folder(tmp_path / "net", "deit")
    made = PictureProcessor(folder)(np.asarray(pictures(1, (40, 50))[0]).transpose(2, 0, 1), "It")
    preparation, photos = expects(folder), write(tmp_path / "photos", [(40, 50)] * 4)
    items = read_pictures(photos, preparation, "train", None, None)
    np.testing.assert_array_equal(np.rint(255 * np.asarray(items.inputs[:1])), made[None])
    assert items.notes[0] == "made 32 x 32 by the image processor net"
    pixels = np.stack([np.asarray(pictures(1, (40, 50))[0])] * 4)
    np.savez(tmp_path / "it.npz", x=pixels, y=[0, 1, 0, 1])
    items = DataFile(tmp_path / "it.npz", preparation)("train", None, None)
    np.testing.assert_array_equal(np.rint(255 * items.inputs[:1]), made[None])


def test_another_processor_makes_other_rows(tmp_path):
    folder = picture_folder(tmp_path / "net", "vit")
    photos = write(tmp_path / "photos", [(40, 50)] * 4)
    before = np.asarray(read_pictures(photos, expects(folder), "train", None, None).inputs[:])
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    (folder / "preprocessor_config.json").write_text(json.dumps(settings | {"resample": 0}))
    after = np.asarray(read_pictures(photos, expects(folder), "train", None, None).inputs[:])
    assert (before != after).any()


def test_pictures_of_several_proportions(tmp_path):
    folder = tmp_path / "net"
    folder.mkdir()
    preparation = expects(folder_of(folder, "CLIPImageProcessor", {"size": SHORTER, "do_center_crop": False}))
    assert preparation.size is None
    items = read_pictures(write(tmp_path / "same", [(40, 60)] * 4), preparation, "train", None, None)
    assert items.inputs.shape[1:] == (3, 32, 48)
    with pytest.raises(DataError, match=r"becomes 48 x 32 by the CLIPImageProcessor, and others 32 x 48.*size of"):
        read_pictures(write(tmp_path / "several", [(40, 60), (60, 40)] * 2), preparation, "train", None, None)


def test_what_lies_beside_the_weights_is_told(tmp_path):
    folder = picture_folder(tmp_path, "vit")
    assert not load_folder(folder).remarks
    (folder / "adapter_config.json").write_text("{}")
    (folder / "preprocessor_config.json").unlink()
    adapter, processor = load_folder(folder).remarks
    assert "adapter beside the weights (adapter_config.json) is not applied" in adapter
    assert "no image processor" in processor
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"holds an adapter.*merge_and_unload"):
        load_folder(folder)


def test_a_picture_of_a_folder_of_grey_pictures(tmp_path):
    settings = {"size": WHOLE, "image_mean": [0.3], "image_std": [0.5], "do_convert_rgb": False}
    folder_of(tmp_path, "ViTImageProcessor", settings)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"num_channels": 1}))
    processor = processor_of(read_configuration(tmp_path))
    grey = pictures(1, (40, 50))[0].convert("L")
    theirs = transformers.AutoImageProcessor.from_pretrained(tmp_path, backend="pil")
    expected = theirs(grey, return_tensors="np")["pixel_values"][0]
    found = processor(np.asarray(grey)[None], "It") / 255 * processor.slope + processor.offset
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
