"""Transformers of many architectures, tiny and with random weights: settings alone, and nothing that knows one."""

from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

SMALL: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "num_labels": 3,
}
WORDS = {"vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
"""Settings under names that most architectures share."""

_ENCODER_DECODER = {
    "d_model": 32,
    "encoder_layers": 3,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": None,
}
_T5 = {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 3, "num_heads": 4, "decoder_start_token_id": 0}
_GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
_PATCHES = {"image_size": 16, "patch_size": 4}
_EXPERTS = {"moe_intermediate_size": 16, "num_experts": 4, "num_experts_per_tok": 2}
_SHIFTED = {"image_size": 16, "patch_size": 2, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 2}
_STAGES = {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 2, 1]}

TEXTS: dict[str, dict[str, Any]] = {
    "albert": {"embedding_size": 16},
    "arcee": {},
    "bart": _ENCODER_DECODER,
    "bert": {},
    "big_bird": {"attention_type": "original_full"},
    "biogpt": {},
    "bloom": {"n_head": 4, "n_layer": 3},
    "canine": {
        "num_hash_buckets": 64,
        "downsampling_rate": 2,
        "local_transformer_stride": 8,
        "upsampling_kernel_size": 3,
    },
    "convbert": {"embedding_size": 32},
    "ctrl": {"dff": 48},
    "data2vec-text": {},
    "deepseek_v3": {
        "n_routed_experts": 4,
        "moe_intermediate_size": 16,
        "n_group": 2,
        "topk_group": 1,
        "num_experts_per_tok": 2,
        "kv_lora_rank": 8,
        "q_lora_rank": 8,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "first_k_dense_replace": 1,
    },
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_buckets": 8},
    "diffllama": {},
    "distilbert": {},
    "doge": {},
    "electra": {"embedding_size": 16},
    "ernie": {},
    "esm": {},
    "eurobert": {},
    "falcon": {},
    "flaubert": {"emb_dim": 32, "n_layers": 3, "n_heads": 4},
    "fnet": {},
    "gemma": _GROUPED,
    "gemma2": _GROUPED,
    "gemma3_text": _GROUPED,
    "glm": _GROUPED,
    "gpt2": {},
    "gpt_bigcode": {},
    "gpt_neox": {},
    "gptj": {"rotary_dim": 4},
    "helium": _GROUPED,
    "ibert": {},
    "layoutlm": {},
    "llama": {},
    "longformer": {"attention_window": 8},
    "luke": {"entity_vocab_size": 10, "entity_emb_size": 16},
    "mbart": _ENCODER_DECODER,
    "megatron-bert": {},
    "mistral": _GROUPED,
    "mixtral": {"num_local_experts": 4, "num_key_value_heads": 2},
    "modernbert": {"local_attention": 8},
    "mpnet": {},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 3, "expansion_ratio": 2},
    "nemotron": _GROUPED,
    "nomic_bert": {},
    "olmo": {},
    "olmo2": {},
    "openai-gpt": {},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "persimmon": {},
    "phi": {},
    "phi3": {},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": _GROUPED,
    "qwen3_moe": _GROUPED | _EXPERTS,
    "rembert": {},
    "roberta": {},
    "roformer": {},
    "smollm3": {"num_key_value_heads": 2},
    "starcoder2": {},
    "t5": _T5,
    "tapas": {},
    "umt5": _T5,
    "xlm": {"emb_dim": 32, "n_layers": 3, "n_heads": 4},
    "xlm-roberta": {},
}

PICTURES: dict[str, dict[str, Any]] = {
    "beit": _PATCHES | {"use_relative_position_bias": True},
    "convnext": _STAGES,
    "dinov2": _PATCHES,
    "segformer": _STAGES | {"num_attention_heads": [1, 1, 2, 2]},
    "swin": _SHIFTED,
    "swinv2": _SHIFTED,
    "vit": _PATCHES,
}

OF_ONE_KIND = frozenset({
    "arcee", "big_bird", "biogpt", "data2vec-text", "distilbert", "electra", "ernie", "esm", "eurobert",
    "flaubert", "gemma", "gemma3_text", "gpt_bigcode", "gpt_neox", "helium", "layoutlm", "mbart", "megatron-bert",
    "mistral", "nemotron", "nomic_bert", "olmo", "olmo2", "persimmon", "phi", "qwen2", "qwen3", "qwen3_moe", "rembert",
    "roberta", "smollm3", "starcoder2", "tapas", "umt5", "xlm-roberta",
})  # fmt: skip
"""Architectures that are close to another one: rare tests. The others are of different kinds."""


@cache
def built(name: str) -> nn.Module:
    """Return a network of an architecture, with weights large enough to matter."""
    from transformers import AutoConfig, AutoModelForImageClassification, AutoModelForSequenceClassification

    pictures = name in PICTURES
    own = PICTURES[name] if pictures else TEXTS[name]
    left_out = {"hidden_size", "num_attention_heads", "num_hidden_layers"} if "embed_dim" in own else set()
    common = {key: value for key, value in (SMALL if pictures else SMALL | WORDS).items() if key not in left_out}
    kind = AutoModelForImageClassification if pictures else AutoModelForSequenceClassification
    network: nn.Module = kind.from_config(AutoConfig.for_model(name, **common | own)).eval()
    generator = torch.Generator().manual_seed(0)
    for parameter in network.parameters():
        parameter.data.add_(torch.randn(parameter.shape, generator=generator) * 0.05)
    return network


def inputs_of(name: str) -> Tensor:
    """Return six inputs."""
    generator = torch.Generator().manual_seed(1)
    if name in PICTURES:
        side = PICTURES[name].get("image_size", 32)
        return torch.randn(6, 3, side, side, generator=generator)
    ids = torch.randint(3, 90, (6, 12 if name != "canine" else 16), generator=generator)
    ids[:, -1] = WORDS["eos_token_id"]
    return ids


def blocks_of(network: nn.Module) -> list[str]:
    """Return the first, the middle and the last of the blocks: members of the largest list of modules."""
    lists = [(name, module) for name, module in network.named_modules() if isinstance(module, nn.ModuleList)]
    name, blocks = max(lists, key=lambda one: (len(one[1]), sum(p.numel() for p in one[1].parameters())))
    return [f"{name}.{place}" for place in sorted({0, len(blocks) // 2, len(blocks) - 1})]
