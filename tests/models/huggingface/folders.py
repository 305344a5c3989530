"""Small Hugging Face folders with random weights, as `save_pretrained` writes them."""

import numpy as np
import torch
import transformers
from PIL import Image
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.convnext.image_processing_pil_convnext import ConvNextImageProcessorPil
from transformers.models.deit.image_processing_pil_deit import DeiTImageProcessorPil
from transformers.models.efficientnet.image_processing_pil_efficientnet import EfficientNetImageProcessorPil
from transformers.models.levit.image_processing_pil_levit import LevitImageProcessorPil
from transformers.models.mobilevit.image_processing_pil_mobilevit import MobileViTImageProcessorPil
from transformers.models.poolformer.image_processing_pil_poolformer import PoolFormerImageProcessorPil
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

TEXTS = (
    "The quick brown fox jumps over the lazy dog.",
    "Engines, orbits & rockets: 1969!",
    "a",
    "Ünïcödé, 漢字 and emoji 🙂 stay in one piece or fall into several; the end is cut off where it is too long " * 3,
    "two  spaces\nand a new line",
)
NAMES = ("good", "bad", "neither")
LENGTH = 24
_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}


def text_folder(folder, kind, seed=0):
    """Write a classifier of texts with its tokenizer; return the folder."""
    marks, tokenizer = TOKENIZERS[kind]()
    size = tokenizer.get_vocab_size()
    named = {"id2label": dict(enumerate(NAMES)), "label2id": {name: place for place, name in enumerate(NAMES)}}
    ids = {f"{name}_id": tokenizer.token_to_id(mark) for name, mark in marks.items() if name != "unk_token"}
    config, network = CONFIGS[kind]
    torch.manual_seed(seed)
    made = network(config(vocab_size=size, **ids, **named))
    stir(made)
    made.eval().save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=LENGTH, **marks).save_pretrained(
        folder
    )
    return folder


def stir(network):
    """Make scores that differ between inputs: fresh weights give nearly the same ones."""
    with torch.no_grad():
        for value in network.parameters():
            value.add_(torch.randn_like(value) * 0.1)


def _pieces():
    corpus = [*TEXTS, "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
    marks = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    tokenizer.train_from_iterator(
        corpus, trainers.WordPieceTrainer(vocab_size=120, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return {name: mark for name, mark in marks.items() if name in ("unk_token", "pad_token")}, tokenizer


def _bytes(special, processor=None):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=300,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    if processor:
        tokenizer.post_processor = processor
    return tokenizer


def _roberta():
    marks = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
    return marks, _bytes(list(marks.values()), processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))


def _gpt2():
    return {"eos_token": "<|endoftext|>"}, _bytes(["<|endoftext|>"])


def _llama():
    marks = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}
    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = list(marks.values())
    tokenizer.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=200, special_tokens=special, show_progress=False)
    )
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 0)])
    return marks, tokenizer


TOKENIZERS = {"bert": _pieces, "distilbert": _pieces, "electra": _pieces, "deberta-v2": _pieces}
TOKENIZERS |= {"roberta": _roberta, "gpt2": _gpt2, "llama": _llama}

CONFIGS = {
    "bert": (
        lambda **given: transformers.BertConfig(max_position_embeddings=32, **_SMALL, **given),
        transformers.BertForSequenceClassification,
    ),
    "distilbert": (
        lambda **given: transformers.DistilBertConfig(
            max_position_embeddings=32, dim=16, n_layers=2, n_heads=2, hidden_dim=32, **given
        ),
        transformers.DistilBertForSequenceClassification,
    ),
    "electra": (
        lambda **given: transformers.ElectraConfig(max_position_embeddings=32, embedding_size=16, **_SMALL, **given),
        transformers.ElectraForSequenceClassification,
    ),
    "deberta-v2": (
        lambda **given: transformers.DebertaV2Config(
            max_position_embeddings=32, relative_attention=True, pos_att_type=["p2c", "c2p"], **_SMALL, **given
        ),
        transformers.DebertaV2ForSequenceClassification,
    ),
    "roberta": (
        lambda **given: transformers.RobertaConfig(max_position_embeddings=32, **_SMALL, **given),
        transformers.RobertaForSequenceClassification,
    ),
    "gpt2": (
        lambda **given: transformers.GPT2Config(
            n_positions=32, n_embd=16, n_layer=2, n_head=2, bos_token_id=0, **given
        ),
        transformers.GPT2ForSequenceClassification,
    ),
    "llama": (
        lambda **given: transformers.LlamaConfig(max_position_embeddings=32, num_key_value_heads=1, **_SMALL, **given),
        transformers.LlamaForSequenceClassification,
    ),
}

PICTURED = {
    "vit": (
        lambda **given: transformers.ViTConfig(image_size=32, patch_size=8, **_SMALL, **given),
        transformers.ViTForImageClassification,
        ViTImageProcessorPil(size={"height": 32, "width": 32}, image_mean=[0.4, 0.5, 0.6], image_std=[0.2, 0.3, 0.25]),
    ),
    "convnext": (
        lambda **given: transformers.ConvNextConfig(depths=[1, 1], hidden_sizes=[8, 16], num_stages=2, **given),
        transformers.ConvNextForImageClassification,
        ConvNextImageProcessorPil(size={"shortest_edge": 32}),
    ),
    "resnet": (
        lambda **given: transformers.ResNetConfig(
            depths=[1, 2], hidden_sizes=[8, 16], embedding_size=8, layer_type="basic", **given
        ),
        transformers.ResNetForImageClassification,
        ConvNextImageProcessorPil(size={"shortest_edge": 32}, crop_pct=0.8, resample=2),
    ),
    "deit": (
        lambda **given: transformers.DeiTConfig(image_size=32, patch_size=8, **_SMALL, **given),
        transformers.DeiTForImageClassification,
        DeiTImageProcessorPil(size={"height": 36, "width": 36}, crop_size={"height": 32, "width": 32}),
    ),
    "swin": (
        lambda **given: transformers.SwinConfig(
            image_size=32, patch_size=2, embed_dim=8, depths=[1, 1], num_heads=[2, 2], window_size=4, **given
        ),
        transformers.SwinForImageClassification,
        ViTImageProcessorPil(
            size={"height": 32, "width": 32}, do_rescale=False, image_mean=[120] * 3, image_std=[60] * 3
        ),
    ),
    "beit": (
        lambda **given: transformers.BeitConfig(image_size=32, patch_size=8, **_SMALL, **given),
        transformers.BeitForImageClassification,
        ViTImageProcessorPil(size={"height": 32, "width": 32}),
    ),
}
_SIDES = {"size": {"shortest_edge": 32}, "crop_size": {"height": 32, "width": 32}}
PICTURED |= {
    f"vit, processor of {name}": (*PICTURED["vit"][:2], processor)
    for name, processor in (
        ("PoolFormer", PoolFormerImageProcessorPil(**_SIDES, crop_pct=0.9)),
        ("LeViT", LevitImageProcessorPil(**_SIDES)),
        ("MobileViT", MobileViTImageProcessorPil(size={"shortest_edge": 36}, crop_size=_SIDES["crop_size"])),
        ("CLIP", CLIPImageProcessorPil(**_SIDES)),
        ("BiT", BitImageProcessorPil(size={"shortest_edge": 40}, crop_size=_SIDES["crop_size"])),
        ("EfficientNet", EfficientNetImageProcessorPil(size={"height": 32, "width": 32}, rescale_offset=True)),
        (
            "EfficientNet without top",
            EfficientNetImageProcessorPil(
                size={"height": 32, "width": 32}, include_top=False, rescale_factor=1 / 127.5
            ),
        ),
    )
}


def picture_folder(folder, kind, seed=0):
    """Write a classifier of pictures with its processor; return the folder."""
    config, network, processor = PICTURED[kind]
    torch.manual_seed(seed)
    made = network(config(id2label=dict(enumerate(NAMES)), label2id={name: n for n, name in enumerate(NAMES)}))
    stir(made)
    made.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def pictures(count=3, size=(32, 32)):
    """Some pictures of noise, rows and columns."""
    random = np.random.default_rng(0)
    return [Image.fromarray(random.integers(0, 256, (*size, 3), dtype=np.uint8)) for _ in range(count)]
