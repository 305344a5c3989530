"""The files of a Hugging Face folder. What needs transformers is imported when a folder is written."""

import json

from idc_core.datasets.tokenizing import tokenize
from idc_core.models.huggingface.configuration import read_configuration
from idc_core.models.huggingface.expecting import processor_of
from tests.guarded import damage
from tests.guarded.reader import Reader

VALUES = "a file without a checksum: other numbers and names may stand in it"
TEXTS = ("some words of a text", "and others, 12")


def _folder(write, name):
    """Write a small folder, and return a file of it."""

    def prepare(folder):
        from idc_core.datasets.pretrained import quiet

        with quiet():  # which also says where torch's compiler makes its folder
            from tests.models.huggingface import folders

        return getattr(folders, write)(folder / "data", "bert" if write == "text_folder" else "vit") / name

    return prepare


def _network(path):
    from idc_core.models.huggingface.reading import load_folder

    return load_folder(path.parent)


def _processing(path):
    found = processor_of(read_configuration(path.parent))
    return None if found is None else (found.size, found.slope, found.offset, found.is_reversed)


def _tokenizer(folder):
    """Write a small tokenizer by hand."""
    words = {word: number for number, word in enumerate(("[PAD]", "[UNK]", "some", "words", "##s", "of", "a", "text"))}
    model = {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "vocab": words}
    model["max_input_chars_per_word"] = 100
    split = {"type": "Split", "pattern": {"Regex": "\\s+|,"}, "behavior": "Removed", "invert": False}
    padding = {"strategy": "BatchLongest", "direction": "Right", "pad_to_multiple_of": None}
    padding |= {"pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}
    content = {"version": "1.0", "truncation": None, "padding": padding, "added_tokens": [], "normalizer": None}
    content |= {"pre_tokenizer": split, "post_processor": None, "decoder": None, "model": model}
    path = folder / "data" / "tokenizer.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _vocabulary(folder):
    """Write a vocabulary alone, as older folders of BERT have."""
    path = folder / "data" / "vocab.txt"
    path.with_name("config.json").write_text('{"model_type": "bert"}', encoding="utf-8")
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nsome\nwords\n##s\nof\na\ntext\n", encoding="utf-8")
    return path


FOLDERS = (
    Reader(
        "Hugging Face, config.json",
        ("idc_core.models.huggingface.configuration",),
        _folder("text_folder", "config.json"),
        _network,
        differs={"damage": VALUES},
        tries=60,
        flips=40,
    ),
    Reader(
        "Hugging Face, weights",
        ("idc_core.models.huggingface.reading",),
        _folder("text_folder", "model.safetensors"),
        _network,
        differs={"damage": VALUES},
        tries=60,
        flips=40,
    ),
    Reader(
        "Hugging Face, processor",
        ("idc_core.datasets.picture_processor",),
        _folder("picture_folder", "preprocessor_config.json"),
        _processing,
        differs={"damage": VALUES, "special": "a folder may have no processor: pictures are as the network says"},
        heads=damage.ends,
        tries=200,
        flips=100,
    ),
    Reader(
        "Hugging Face, tokenizer",
        ("idc_core.datasets.pretrained", "idc_core.datasets.tokenizing"),
        _tokenizer,
        lambda path: tokenize(TEXTS, path.parent, 8),
        differs={"damage": VALUES},
        tries=300,
        flips=200,
    ),
    Reader(
        "Hugging Face, vocabulary",
        ("idc_core.datasets.pretrained", "idc_core.datasets.tokenizing"),
        _vocabulary,
        lambda path: tokenize(TEXTS, path.parent, 8),
        differs={"damage": VALUES},
        tries=200,
        flips=100,
    ),
)
