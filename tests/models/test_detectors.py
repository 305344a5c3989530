"""Detectors and segmentation from files, setup files and folders: axes found or asked, layers, what is said."""

import re

import numpy as np
import onnxruntime
import pytest
import torch
import transformers
from torch import nn

import idc_core as idc
from idc_core.analysis.network_check import check_network
from idc_core.cli import _make_parser
from idc_core.cli.own_options import open_paths
from idc_core.datasets import DATASETS
from idc_core.errors import ModelError
from idc_core.models import MODELS

RANDOM = np.random.default_rng(0)
PICTURES = RANDOM.random((24, 3, 32, 32)).astype(np.float32)


@pytest.fixture(autouse=True)
def registries():
    before = dict(DATASETS), dict(MODELS)
    idc.dataset("objects", class_names=("cat", "dog", "owl"))(lambda split: (PICTURES, np.arange(24) % 3))
    yield
    for registry, old in zip((DATASETS, MODELS), before, strict=True):
        registry.clear()
        registry.update(old)


class Detector(nn.Module):
    """Boxes of two sizes: a backbone that they share, and heads with a branch for scores and one for boxes each."""

    def __init__(self, end, columns=3):
        super().__init__()
        torch.manual_seed(0)
        self.stem, self.neck = nn.Conv2d(3, 6, 3, 2, 1), nn.Conv2d(6, 8, 3, 2, 1)
        self.small_box, self.small = nn.Conv2d(8, 4, 1), nn.Conv2d(8, columns, 1)
        self.down = nn.Conv2d(8, 8, 3, 2, 1)
        self.large, self.large_box = nn.Conv2d(8, columns, 1), nn.Conv2d(8, 4, 1)
        self.end = end

    def forward(self, x):
        fine = torch.relu(self.neck(torch.relu(self.stem(x))))
        coarse = torch.relu(self.down(fine))
        heads = ((fine, self.small_box, self.small), (coarse, self.large_box, self.large))
        boxes, scores = (torch.cat([head[part](head[0]).flatten(2) for head in heads], 2) for part in (1, 2))
        return self.end(boxes, scores)


def yolo8(boxes, scores):
    return torch.cat([boxes, scores.sigmoid()], 1)


ENDS = {
    "4+classes,boxes": (yolo8, 3),
    "boxes,5+classes": (lambda boxes, scores: yolo8(boxes, scores).transpose(1, 2), 4),
    "boxes,classes": (lambda boxes, scores: {"logits": scores.transpose(1, 2), "boxes": boxes.transpose(1, 2)}, 3),
    "boxes,1+classes": (lambda boxes, scores: (boxes.transpose(1, 2), scores.transpose(1, 2).softmax(2)), 4),
}


@pytest.mark.parametrize("axes", ENDS)
def test_a_detector_of_a_setup_file(axes):
    explain = f"best-box:{axes}" if axes == "boxes,1+classes" else "best-box"
    output = "1" if axes == "boxes,1+classes" else ""
    idc.network("net", data="objects", explain=explain, output=output)(lambda: Detector(*ENDS[axes]).eval())
    network = idc.load_model("net")
    given = torch.from_numpy(PICTURES)
    whole = Detector(*ENDS[axes]).eval()
    with torch.no_grad():
        fine = torch.relu(whole.neck(torch.relu(whole.stem(given))))
        maps = [whole.small(fine), whole.large(torch.relu(whole.down(fine)))]
        raw = torch.cat([one.flatten(2) for one in maps], 2).double().numpy()
    if axes == "boxes,5+classes":
        both = 1 / (1 + np.exp(-raw[:, :1])) / (1 + np.exp(-raw[:, 1:]))
        raw = np.log(both / (1 - both))
    if axes == "boxes,1+classes":
        raw = raw[:, 1:] - raw[:, :1]
    with torch.no_grad():
        np.testing.assert_allclose(network(given), raw.max(2), rtol=1e-3, atol=1e-4)
    assert any("classifier of whole pictures" in remark for remark in network.remarks)
    # What gives boxes leads to no score; what one size of boxes has for itself is none to begin with.
    assert network.card.layers == ("stem", "neck", "down", "small", "large")
    assert network.card.default_layer == "neck"
    train = idc.load_dataset("objects", "train")
    assert idc.analyze(network, train, train, layer="neck", m=3).covered > 1


def export(path, axes):
    names = ["boxes", "logits"] if isinstance(ENDS[axes][0](torch.zeros(1, 4, 2), torch.zeros(1, 3, 2)), dict) else None
    with torch.no_grad():
        torch.onnx.export(
            Detector(*ENDS[axes]).eval(),
            (torch.zeros(1, 3, 32, 32),),
            path,
            dynamo=False,
            input_names=["images"],
            output_names=names or ["output0"],
            dynamic_axes={"images": {0: "n"}, "output0": {0: "n"}},
        )
    return path


def test_a_detector_of_an_onnx_file_is_opened_by_a_line_that_the_error_holds(tmp_path):
    idc.dataset("many", class_names=tuple("abcdef"))(lambda split: (PICTURES, np.arange(24) % 6))
    path = export(tmp_path / "yolo.onnx", "4+classes,boxes")
    with pytest.raises(ModelError, match="--explain NAME"):
        idc.load_model(path, data="many")
    with pytest.raises(ModelError, match="not known where the classes are") as asked:
        idc.load_model(path, data="many", explain="best-box")
    line = re.search(r"--explain (\S+) \(3 classes", str(asked.value))[1]
    assert line == "best-box:4+classes,boxes"
    words = ["check-network", "--model", str(path), "--data", "objects", "--explain"]
    for explain in ("mean-boxes", line):
        arguments = _make_parser().parse_args([*words, explain])
        open_paths(arguments)
        checked = check_network(arguments.model)
        assert any("classifier of whole pictures" in note for note in checked.notes)
        MODELS.pop(arguments.model)
    network = idc.load_model(path, data="objects", explain="best-box")
    assert any("is read as 4+classes,boxes: --explain best-box:4+classes,boxes" in one for one in network.remarks)
    (output,) = onnxruntime.InferenceSession(path).run(None, {"images": PICTURES})
    best = output[:, 4:].max(2)
    with torch.no_grad():
        np.testing.assert_allclose(network(torch.from_numpy(PICTURES)), np.log(best / (1 - best)), atol=1e-4)


_NAMES = {0: "cat", 1: "dog", 2: "owl"}
_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def folder_of(path, config, kind):
    torch.manual_seed(0)
    made = kind(config).eval()
    made.save_pretrained(path)
    return made


def test_yolos_of_a_hugging_face_folder(tmp_path):
    config = transformers.YolosConfig(
        image_size=[32, 32], patch_size=8, num_detection_tokens=5, id2label=_NAMES, **_SMALL
    )
    made = folder_of(tmp_path, config, transformers.YolosForObjectDetection)
    with pytest.raises(ModelError, match=r"--explain best-box:boxes,classes\+1 \(3 classes; DETR, YOLOS"):
        idc.load_model(tmp_path, data="objects", explain="best-box")
    network = idc.load_model(tmp_path, data="objects", explain="best-box:boxes,classes+1")
    given = torch.from_numpy(PICTURES)
    with torch.no_grad():
        logits = made(given).logits
        torch.testing.assert_close(network(given), (logits[..., :3] - logits[..., 3:]).amax(1), rtol=1e-4, atol=1e-5)
    assert "bbox" not in " ".join(network.card.layers)


def test_segformer_of_a_hugging_face_folder(tmp_path):
    config = transformers.SegformerConfig(
        num_encoder_blocks=2,
        depths=[1, 1],
        sr_ratios=[2, 1],
        hidden_sizes=[8, 16],
        patch_sizes=[3, 3],
        strides=[2, 2],
        num_attention_heads=[1, 2],
        mlp_ratios=[2, 2],
        decoder_hidden_size=16,
        id2label=_NAMES,
    )
    made = folder_of(tmp_path, config, transformers.SegformerForSemanticSegmentation)
    network = idc.load_model(tmp_path, data="objects", explain="mean-pixels")
    given = torch.from_numpy(PICTURES)
    with torch.no_grad():
        torch.testing.assert_close(network(given), made(given).logits.mean((2, 3)), rtol=1e-4, atol=1e-5)
    masked = idc.load_model(tmp_path, data="objects", explain="mean-mask")
    train = idc.load_dataset("objects", "train")
    assert idc.analyze(masked, train, train, layer=masked.card.default_layer, m=3).covered > 1
