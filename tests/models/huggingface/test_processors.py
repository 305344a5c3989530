"""Pictures are what the image processor of a folder makes of them, to 1e-6, for every class that is followed."""

import io
import json

import numpy as np
import pytest
import torch
from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
from transformers.models.auto.modeling_auto import MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
from transformers.models.beit.image_processing_pil_beit import BeitImageProcessorPil
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.chinese_clip.image_processing_pil_chinese_clip import ChineseCLIPImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil
from transformers.models.levit.image_processing_pil_levit import LevitImageProcessorPil
from transformers.models.mobilenet_v1.image_processing_pil_mobilenet_v1 import MobileNetV1ImageProcessorPil
from transformers.models.mobilenet_v2.image_processing_pil_mobilenet_v2 import MobileNetV2ImageProcessorPil
from transformers.models.mobilevit.image_processing_pil_mobilevit import MobileViTImageProcessorPil
from transformers.models.perceiver.image_processing_pil_perceiver import PerceiverImageProcessorPil
from transformers.models.poolformer.image_processing_pil_poolformer import PoolFormerImageProcessorPil
from transformers.models.pvt.image_processing_pil_pvt import PvtImageProcessorPil
from transformers.models.segformer.image_processing_pil_segformer import SegformerImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.textnet.image_processing_pil_textnet import TextNetImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

from idc_core.guarded import read_photo
from idc_core.models.huggingface.configuration import read_configuration
from idc_core.models.huggingface.processing import _FOLLOWED, read_processing
from idc_core.models.wrapping import Before
from tests.models.huggingface.folders import pictures

WHOLE, SHORTER = {"height": 32, "width": 32}, {"shortest_edge": 32}
SMALLER = {"height": 28, "width": 28}

AS_THEY_ARE = (
    *(BeitImageProcessorPil, BitImageProcessorPil, ChineseCLIPImageProcessorPil, CLIPImageProcessorPil),
    *(ConvNextImageProcessorPil, DeiTImageProcessorPil, EfficientNetImageProcessorPil, LevitImageProcessorPil),
    *(MobileNetV1ImageProcessorPil, MobileNetV2ImageProcessorPil, MobileViTImageProcessorPil),
    *(PerceiverImageProcessorPil, PoolFormerImageProcessorPil, PvtImageProcessorPil, SegformerImageProcessorPil),
    *(SiglipImageProcessorPil, ViTImageProcessorPil),
)

PROCESSORS = {kind.__name__: kind() for kind in AS_THEY_ARE} | {
    "a crop of what BEiT has stretched": BeitImageProcessorPil(size=WHOLE, do_center_crop=True, crop_size=SMALLER),
    "a crop larger than DeiT's picture": DeiTImageProcessorPil(size=SMALLER, crop_size=WHOLE),
    "a crop larger than BiT's picture by an odd number": BitImageProcessorPil(
        size={"shortest_edge": 31}, crop_size={"height": 36, "width": 36}
    ),
    "a crop larger than MobileViT's picture": MobileViTImageProcessorPil(
        size=SHORTER, crop_size={"height": 40, "width": 40}
    ),
    "ConvNeXt's share": ConvNextImageProcessorPil(size=SHORTER, crop_pct=0.8),
    "EfficientNet with an offset": EfficientNetImageProcessorPil(
        size=WHOLE, rescale_offset=True, rescale_factor=1 / 127.5
    ),
    "EfficientNet without top": EfficientNetImageProcessorPil(size=WHOLE, include_top=False),
    "Perceiver's small middle": PerceiverImageProcessorPil(size=SMALLER, crop_size={"height": 49, "width": 49}),
    "pixels of 0 to 255": ViTImageProcessorPil(size=WHOLE, do_rescale=False, image_mean=[120] * 3, image_std=[60] * 3),
    "no scaling": ViTImageProcessorPil(size=WHOLE, do_rescale=True, do_normalize=False),
    **{
        f"filter {number}": CLIPImageProcessorPil(size=SHORTER, crop_size=WHOLE, resample=number) for number in range(6)
    },
}

NOT_FOLLOWED = {"Donut", "Gemma3", "ImageGPT", "PPLCNet", "Siglip2", "TextNet", "TimmWrapper"}
"""Processors of classifiers that do more than to resize, crop and scale, or have no edition without torchvision."""


def processing_of(folder, processor):
    processor.save_pretrained(folder)
    config = {"architectures": ["ViTForImageClassification"], "model_type": "vit", "id2label": {0: "a", 1: "b"}}
    (folder / "config.json").write_text(json.dumps(config))
    return read_processing(read_configuration(folder))


def made_by(processing, picture):
    """Return what a network gets of a picture in a file."""
    content = io.BytesIO()
    picture.save(content, "png")
    fitted = read_photo(
        content.getvalue(),
        "picture",
        channels=processing.channels,
        size=processing.size,
        fit=processing.fit,
        resample=processing.resample,
        margin=processing.margin,
    )
    return Before(processing.scaling)(torch.nn.Identity(), (torch.from_numpy(fitted[None]).float() / 255,))[0].numpy()


@pytest.mark.parametrize("name", PROCESSORS)
def test_a_network_gets_what_its_processor_makes(name, tmp_path):
    processor = PROCESSORS[name]
    processing = processing_of(tmp_path, processor)
    assert not processing.remark
    for picture in (pictures(1, size)[0] for size in ((47, 71), (80, 33), (20, 24), (33, 33), (5, 9))):
        told = processor(picture, return_tensors="np")["pixel_values"]
        largest = max(1.0, float(np.abs(told).max()))
        np.testing.assert_allclose(made_by(processing, picture), told, rtol=0, atol=1e-6 * largest)


def test_a_processor_that_is_not_followed_says_so(tmp_path):
    processing = processing_of(tmp_path, TextNetImageProcessorPil(size={"shortest_edge": 40}))
    assert "TextNetImageProcessor is followed in its settings" in processing.remark
    picture = pictures(1, (50, 50))[0]  # brought to 64, the next multiple of 32
    told = TextNetImageProcessorPil(size={"shortest_edge": 40})(picture, return_tensors="np")["pixel_values"]
    np.testing.assert_allclose(made_by(processing, picture), told, rtol=0, atol=3e-6)


def test_a_processor_that_keeps_proportions_says_so(tmp_path):
    processing = processing_of(tmp_path, CLIPImageProcessorPil(size=SHORTER, do_center_crop=False))
    assert "keeps the proportions of pictures; here all are 32 x 32" in processing.remark


def test_every_processor_of_a_classifier_of_pictures_is_compared_or_says_that_it_is_not_followed():
    names = {
        name.removesuffix("Pil").removesuffix("ImageProcessor")
        for kind in MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
        for name in IMAGE_PROCESSOR_MAPPING_NAMES.get(kind, {}).values()
    }
    compared = {kind.__name__.removesuffix("ImageProcessorPil") for kind in AS_THEY_ARE}
    assert set(_FOLLOWED.split()) == compared
    assert names <= compared | NOT_FOLLOWED
