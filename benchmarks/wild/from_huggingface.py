"""Hugging Face folders of small networks with random weights, one of each architecture, by `save_pretrained`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.wild.subjects import Case, Subject

_INPUTS, _TOKENS, _WORDS = 18, 16, 120
_LABELS = {0: "no", 1: "yes", 2: "neither"}
_SIDE = {"levit": 64, "mobilevit": 64, "mobilevitv2": 64, "textnet": 64}
"""Rows and columns of pictures; 32 of all others."""

_SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
_GROUPED = {"num_key_value_heads": 2, "head_dim": 8}
_GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}
_FOUR = {"hidden_sizes": [16, 16, 32, 32], "depths": [1, 1, 1, 1]}
_BOTH = {
    **{"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64},
    **{"encoder_attention_heads": 4, "decoder_attention_heads": 4},
}
_TEXT = {
    **_SMALL,
    **{"vocab_size": _WORDS, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
}

_TEXTS: dict[str, dict[str, object]] = {
    "albert": {"embedding_size": 16},
    "bart": {**_BOTH, "decoder_start_token_id": 2, "forced_eos_token_id": None},
    "bert": {},
    "big_bird": {"attention_type": "original_full"},
    "biogpt": {},
    "bloom": {"n_layer": 2, "n_head": 4},
    "canine": {"num_hash_buckets": 64, "num_hash_functions": 4},
    "convbert": {"embedding_size": 32},
    "ctrl": {**_GPT, "dff": 64},
    "data2vec-text": {},
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "pooler_hidden_size": 32},
    "deberta-v2": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "pooler_hidden_size": 32},
    "distilbert": {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "electra": {"embedding_size": 16},
    "esm": {"position_embedding_type": "rotary", "mask_token_id": 5},
    "eurobert": {**_GROUPED},
    "falcon": {},
    "flaubert": {"emb_dim": 32, "n_layers": 2, "n_heads": 4},
    "fnet": {},
    "funnel": {
        "num_hidden_layers": None,
        "block_sizes": [1, 1],
        "d_model": 32,
        "n_head": 4,
        "d_head": 8,
        "d_inner": 64,
    },
    "gemma": {**_GROUPED},
    "gemma2": {**_GROUPED},
    "gemma3_text": {**_GROUPED},
    "glm": {**_GROUPED},
    "gpt2": {**_GPT},
    "gpt_bigcode": {**_GPT},
    "gpt_neo": {"num_layers": 2, "num_heads": 4, "attention_types": [[["global", "local"], 1]], "window_size": 4},
    "gpt_neox": {},
    "gptj": {**_GPT, "rotary_dim": 4},
    "ibert": {},
    "jamba": {
        "num_key_value_heads": 2,
        "num_experts": 2,
        "num_experts_per_tok": 1,
        "use_mamba_kernels": False,
        "mamba_dt_rank": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
    },
    "llama": {**_GROUPED},
    "longformer": {"attention_window": [8, 8]},
    "mbart": {**_BOTH},
    "megatron-bert": {},
    "mistral": {**_GROUPED},
    "mixtral": {**_GROUPED, "num_local_experts": 2, "num_experts_per_tok": 1},
    "mobilebert": {"embedding_size": 32, "true_hidden_size": 32, "intra_bottleneck_size": 32},
    "modernbert": {"global_attn_every_n_layers": 2, "local_attention": 8, "cls_token_id": 1, "sep_token_id": 2},
    "mpnet": {},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 64},
    "mra": {},
    "nystromformer": {"num_landmarks": 16, "segment_means_seq_len": 16},
    "nemotron": {**_GROUPED},
    "olmo": {**_GROUPED},
    "openai-gpt": {**_GPT},
    "opt": {"ffn_dim": 64, "word_embed_proj_dim": 32},
    "perceiver": {
        "num_latents": 8,
        "d_latents": 32,
        "d_model": 32,
        "num_blocks": 1,
        "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4,
        "num_cross_attention_heads": 4,
    },
    "phi": {},
    "phi3": {**_GROUPED},
    "qwen2": {**_GROUPED},
    "qwen3": {**_GROUPED},
    "reformer": {
        "attention_head_size": 8,
        "axial_pos_embds_dim": [16, 16],
        "axial_pos_shape": [4, 4],
        "attn_layers": ["local", "local"],
        "local_attn_chunk_length": 8,
        "feed_forward_size": 64,
    },
    "roberta": {},
    "roc_bert": {"enable_pronunciation": False, "enable_shape": False},
    "roformer": {"embedding_size": 16},
    "smollm3": {**_GROUPED},
    "squeezebert": {
        "embedding_size": 32,
        "q_groups": 2,
        "k_groups": 2,
        "v_groups": 2,
        "post_attention_groups": 1,
        "intermediate_groups": 2,
        "output_groups": 2,
    },
    "starcoder2": {**_GROUPED},
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4, "decoder_start_token_id": 0},
    "xlm": {"emb_dim": 32, "n_layers": 2, "n_heads": 4},
    "xlm-roberta": {},
    "xlnet": {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64, "max_position_embeddings": None},
    "yoso": {},
    "nomic_bert": {},
    "gpt_oss": {**_GROUPED, "num_local_experts": 2, "num_experts_per_tok": 1},
}

_PICTURES: dict[str, dict[str, object]] = {
    "beit": {**_SMALL, "patch_size": 8},
    "bit": {"embedding_size": 16, "hidden_sizes": [16, 32], "depths": [1, 1], "num_groups": 4},
    "clip": {"text_config": {**_SMALL}, "vision_config": {"image_size": 32, "patch_size": 8, **_SMALL}},
    "convnext": {"depths": [1, 1], "hidden_sizes": [16, 32], "num_stages": 2},
    "convnextv2": {"depths": [1, 1], "hidden_sizes": [16, 32], "num_stages": 2},
    "cvt": {"embed_dim": [16, 32, 32], "num_heads": [1, 2, 2], "depth": [1, 2, 3]},
    "data2vec-vision": {**_SMALL, "patch_size": 8},
    "deit": {**_SMALL, "patch_size": 8},
    "dinov2": {**_SMALL, "patch_size": 8},
    "dinov2_with_registers": {**_SMALL, "patch_size": 8},
    "donut-swin": {"patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    "efficientnet": {"width_coefficient": 0.25, "depth_coefficient": 0.25, "hidden_dim": 320},
    "focalnet": {
        "patch_size": 2,
        "embed_dim": 16,
        "depths": [1, 1],
        "focal_levels": [2, 2],
        "focal_windows": [3, 3],
        "hidden_sizes": [16, 32],
    },
    "hgnet_v2": {
        **_FOUR,
        "embedding_size": 16,
        "stem_channels": [3, 8, 16],
        "stage_in_channels": [16, 16, 16, 32],
        "stage_mid_channels": [8, 8, 8, 8],
        "stage_out_channels": [16, 16, 32, 32],
        "stage_num_blocks": [1, 1, 1, 1],
        "stage_numb_of_layers": [2, 2, 2, 2],
    },
    "hiera": {
        "embed_dim": 16,
        "image_size": [32, 32],
        "patch_size": [3, 3],
        "patch_stride": [4, 4],
        "patch_padding": [1, 1],
        "num_heads": [1, 2],
        "depths": [1, 1],
        "num_query_pool": 1,
        "masked_unit_size": [4, 4],
    },
    "ijepa": {**_SMALL, "patch_size": 8},
    "levit": {
        "image_size": 64,
        "hidden_sizes": [16, 32, 32],
        "num_attention_heads": [2, 2, 2],
        "depths": [1, 1, 1],
        "key_dim": [8, 8, 8],
    },
    "metaclip_2": {"text_config": {**_SMALL}, "vision_config": {"image_size": 32, "patch_size": 8, **_SMALL}},
    "mobilenet_v1": {"depth_multiplier": 0.25},
    "mobilenet_v2": {"depth_multiplier": 0.25},
    "mobilevit": {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 16, 16, 16, 24, 32, 32]},
    "mobilevitv2": {"image_size": 64, "width_multiplier": 0.25},
    "perceiver": {
        "num_latents": 8,
        "d_latents": 32,
        "d_model": 32,
        "image_size": 32,
        "num_blocks": 1,
        "num_self_attends_per_block": 2,
        "num_self_attention_heads": 4,
        "num_cross_attention_heads": 1,
    },
    "poolformer": {**_FOUR},
    "pvt": {**_FOUR, "num_attention_heads": [1, 1, 2, 2]},
    "pvt_v2": {**_FOUR, "num_attention_heads": [1, 1, 2, 2], "image_size": {"height": 32, "width": 32}},
    "regnet": {**_FOUR, "embedding_size": 8, "groups_width": 8},
    "resnet": {**_FOUR, "embedding_size": 8, "layer_type": "basic"},
    "segformer": {**_FOUR, "num_attention_heads": [1, 1, 2, 2], "decoder_hidden_size": 32},
    "siglip": {"text_config": {**_SMALL}, "vision_config": {"image_size": 32, "patch_size": 8, **_SMALL}},
    "swiftformer": {"depths": [1, 1, 1, 1], "embed_dims": [16, 16, 32, 32]},
    "swin": {"patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    "swinv2": {"patch_size": 2, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4},
    "textnet": {},
    "vit": {**_SMALL, "patch_size": 8},
    "vit_msn": {**_SMALL, "patch_size": 8},
    "dinat": {"patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2]},
    "timm_wrapper": {"architecture": "resnet18"},
}

_SOUNDS: dict[str, dict[str, object]] = {
    "wav2vec2": {**_SMALL},
    "audio-spectrogram-transformer": {**_SMALL},
    "whisper": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
    },
}


def subjects() -> Iterator[Subject]:
    """Return one subject for each architecture."""
    for kind, known in (("texts", _TEXTS), ("pictures", _PICTURES), ("sounds", _SOUNDS)):
        for name in known:
            case = partial(_case, kind, name)
            yield Subject("huggingface", f"{name}, {kind}", "transformers", case, by_library=kind == "pictures")


def _case(kind: str, name: str, folder: Path) -> Case:
    os.environ["HF_HUB_OFFLINE"] = "1"
    network = _saved(kind, name, folder / "network")
    random = np.random.default_rng(0)
    side = _SIDE.get(name, 32)
    inputs: NDArray[np.generic] = random.random((_INPUTS, 3, side, side), dtype=np.float32)
    if kind == "texts":
        inputs = random.integers(3, _WORDS, (_INPUTS, _TOKENS))
        inputs[:, -1] = 2  # the end of a text, where some networks read their answer
        inputs[::3, 11:] = [2, *[0] * (_TOKENS - 12)]  # padding

    def runtime(given: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
        taken = torch.from_numpy(given)
        named = (
            {"input_ids": taken, "attention_mask": (taken != 0).long()} if kind == "texts" else {"pixel_values": taken}
        )
        with torch.no_grad():
            return {"logits": network(**named).logits.numpy()} if kind != "sounds" else {"logits": given[:, 0, 0, :3]}

    return Case(str(folder / "network"), inputs, runtime)


def _saved(kind: str, name: str, folder: Path) -> torch.nn.Module:
    """Write the folder of a network with random weights; return the network."""
    from transformers import CONFIG_MAPPING
    from transformers.models.auto import modeling_auto as auto

    classes: Mapping[type, type | tuple[type, ...]] = {
        "texts": auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
        "pictures": auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING,
        "sounds": auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING,
    }[kind]
    usual = {"texts": _TEXT, "pictures": {"image_size": 32, "num_channels": 3}, "sounds": {}}[kind]
    given = {"texts": _TEXTS, "pictures": _PICTURES, "sounds": _SOUNDS}[kind][name]
    settings = {key: value for key, value in {**usual, **given}.items() if value is not None}
    config = CONFIG_MAPPING[name](**settings, id2label=_LABELS, label2id={one: n for n, one in _LABELS.items()})
    made = classes[type(config)]
    torch.manual_seed(0)
    network: torch.nn.Module = (made[0] if isinstance(made, tuple | list) else made)(config)
    with torch.no_grad():
        for parameter in network.parameters():  # fresh weights give nearly the same scores for all inputs
            parameter.add_(0.1 * torch.randn_like(parameter))
    network.eval().save_pretrained(folder)
    return network
