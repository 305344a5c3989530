"""Architectures of packages of PyPI, small, with random weights: tables, sound, graphs, series, videos, detection."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from benchmarks.wild.from_timm import enter_module, module_case, stand_for_torchvision, warm
from benchmarks.wild.subjects import Case, Subject

_CLASSES, _INPUTS = 3, 24
_TABLE, _SERIES, _SOUND, _IMAGE, _VIDEO, _VOLUME = (
    (12,),
    (16, 8),
    (24, 32),
    (3, 32, 32),
    (4, 3, 32, 32),
    (1, 32, 32, 32),
)


class Ends(nn.Module):
    """A network of a package with what a person writes around it."""

    def __init__(
        self, body: nn.Module, out: int = 0, before: Any = None, behind: Any = None, **more: nn.Module
    ) -> None:
        super().__init__()
        self.body, self._before, self._behind = body, before, behind
        self.out = nn.Linear(out, _CLASSES) if out else nn.Identity()
        for name, module in more.items():
            self.add_module(name, module)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        h = self.body(x)
        h = h[0] if isinstance(h, tuple) else h
        return self.out(h if self._behind is None else self._behind(h))


def _of(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _mean(h: torch.Tensor) -> torch.Tensor:
    return h.mean(1)


class _Graph(nn.Module):
    """Two layers of a kind of torch_geometric on a ring of 12 nodes with chords."""

    def __init__(self, kind: str, dense: bool, **options: Any) -> None:
        super().__init__()
        layer = _of("torch_geometric.nn", kind)
        nodes = torch.arange(12)
        edges = torch.cat([torch.stack([nodes, (nodes + step) % 12]) for step in (1, 11, 3, 9)], 1)
        matrix = torch.zeros(12, 12).index_put((edges[0], edges[1]), torch.ones(edges.shape[1]))
        self.register_buffer("edges", matrix if dense else edges)
        made = (lambda a, b: layer(nn.Linear(a, b))) if "GIN" in kind else (lambda a, b: layer(a, b, **options))
        self.first, self.second, self.out = made(8, 16), made(16, 16), nn.Linear(16, _CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores of graphs whose nodes have features (n, 12, 8)."""
        return self.out(torch.relu(self.second(torch.relu(self.first(x, self.edges)), self.edges)).mean(1))


@dataclass(frozen=True)
class _Made:
    package: str
    shape: tuple[int, ...]
    build: Callable[[], nn.Module]


def _vit(module: str, name: str, shape: tuple[int, ...] = _IMAGE, **options: Any) -> _Made:
    usual = {"num_classes": _CLASSES, "dim": 16, "depth": 2, "heads": 2, "mlp_dim": 32}
    return _Made("vit-pytorch", shape, lambda: _of(f"vit_pytorch.{module}", name)(**usual | options))


def _monai(name: str, shape: tuple[int, ...], behind: Any = None, **options: Any) -> _Made:
    return _Made("monai", shape, lambda: Ends(_of("monai.networks.nets", name)(**options), behind=behind))


def _graph(kind: str, dense: bool = False, **options: Any) -> _Made:
    return _Made("torch_geometric", (12, 8), lambda: _Graph(kind, dense, **options))


def _tabnet(name: str) -> _Made:
    def build() -> nn.Module:
        network = _of("pytorch_tabnet.tab_network", name)(
            12, _CLASSES, n_d=4, n_a=4, virtual_batch_size=16, group_attention_matrix=torch.eye(12)
        )
        for module in network.modules():  # which would stay of single precision
            if isinstance(matrix := vars(module).pop("group_attention_matrix", None), torch.Tensor):
                module.register_buffer("group_attention_matrix", matrix)
        return Ends(network)

    return _Made("pytorch-tabnet", _TABLE, build)


def _maps(h: torch.Tensor) -> torch.Tensor:
    return h.flatten(2).mean(2)


_BLOCKS = {"n_blocks": 2, "d_block": 16, "dropout": 0.0}

_ARCHITECTURES = {
    "MLP": _Made("rtdl_revisiting_models", _TABLE, lambda: _of("rtdl_revisiting_models", "MLP")(
        d_in=12, d_out=_CLASSES, **_BLOCKS)),
    "ResNet": _Made("rtdl_revisiting_models", _TABLE, lambda: _of("rtdl_revisiting_models", "ResNet")(
        d_in=12, d_out=_CLASSES, n_blocks=2, d_block=16, d_hidden=None, d_hidden_multiplier=2.0, dropout1=0.1,
        dropout2=0.1)),
    "FTTransformer": _Made("rtdl_revisiting_models", _TABLE, lambda: Ends(
        _Second(_of("rtdl_revisiting_models", "FTTransformer")(
            n_cont_features=12, cat_cardinalities=[], d_out=_CLASSES, n_blocks=2, d_block=16, attention_n_heads=2,
            attention_dropout=0.1, ffn_d_hidden=None, ffn_d_hidden_multiplier=2.0, ffn_dropout=0.1,
            residual_dropout=0.0)))),
    "PeriodicEmbeddings": _Made("rtdl_num_embeddings", _TABLE, lambda: Ends(_of(
        "rtdl_num_embeddings", "PeriodicEmbeddings")(12, 8, lite=False), 96, behind=lambda h: h.flatten(1))),
    "LinearReLUEmbeddings": _Made("rtdl_num_embeddings", _TABLE, lambda: Ends(_of(
        "rtdl_num_embeddings", "LinearReLUEmbeddings")(12, 8), 96, behind=lambda h: h.flatten(1))),
    "TabM": _Made("tabm", _TABLE, lambda: Ends(_of("tabm", "TabM")(
        n_num_features=12, d_out=_CLASSES, n_blocks=2, d_block=16, dropout=0.0, k=4,
        start_scaling_init="random-signs"), behind=_mean)),
    "TabNet": _tabnet("TabNet"),
    "TabNet without embedding": _tabnet("TabNetNoEmbeddings"),
    "Conformer": _Made("conformer", _SOUND, lambda: Ends(_of("conformer", "Conformer")(
        dim=32, depth=1, dim_head=8, heads=2, conv_kernel_size=5), 32, behind=_mean)),
    "TCN": _Made("pytorch-tcn", (8, 16), lambda: Ends(_of("pytorch_tcn", "TCN")(8, [8, 8], kernel_size=3), 8,
        behind=lambda h: h[..., -1])),
    "CfC": _Made("ncps", _SERIES, lambda: Ends(_of("ncps.torch", "CfC")(8, 12), 12, behind=_mean)),
    "LTC": _Made("ncps", _SERIES, lambda: Ends(_of("ncps.torch", "LTC")(8, 12), 12, behind=_mean)),
    "iTransformer": _Made("itransformer", _SERIES, lambda: Ends(_of("iTransformer", "iTransformer")(
        num_variates=8, lookback_len=16, dim=16, depth=1, heads=2, dim_head=8, pred_length=_CLASSES),
        behind=lambda h: next(iter(h.values())).mean(2) if isinstance(h, dict) else h.mean(2))),
    "Encoder of x-transformers": _Made("x-transformers", _SERIES, lambda: Ends(_of(
        "x_transformers", "ContinuousTransformerWrapper")(dim_in=8, max_seq_len=16, attn_layers=_of(
        "x_transformers", "Encoder")(dim=16, depth=2, heads=2, attn_dim_head=8)), 16, behind=_mean)),
    "Encoder with rotary and GLU": _Made("x-transformers", _SERIES, lambda: Ends(_of(
        "x_transformers", "ContinuousTransformerWrapper")(dim_in=8, max_seq_len=16, attn_layers=_of(
        "x_transformers", "Encoder")(dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True, ff_glu=True,
        use_rmsnorm=True)), 16, behind=_mean)),
    "Performer": _Made("performer-pytorch", (16, 16), lambda: Ends(_of("performer_pytorch", "Performer")(
        dim=16, depth=1, heads=2, dim_head=8, generalized_attention=True), 16, behind=_mean)),
    "Perceiver": _Made("perceiver-pytorch", _SERIES, lambda: _of("perceiver_pytorch", "Perceiver")(
        num_freq_bands=2, depth=1, max_freq=4.0, input_channels=8, input_axis=1, num_latents=4, latent_dim=16,
        cross_heads=1, latent_heads=2, cross_dim_head=8, latent_dim_head=8, num_classes=_CLASSES)),
    "Linear attention": _Made("linear_attention_transformer", (16, 16), lambda: Ends(_of(
        "linear_attention_transformer", "LinearAttentionTransformer")(dim=16, heads=2, depth=1, max_seq_len=16), 16,
        behind=_mean)),
    "gMLP": _Made("g-mlp-pytorch", _IMAGE, lambda: _of("g_mlp_pytorch", "gMLPVision")(
        image_size=32, patch_size=8, num_classes=_CLASSES, dim=16, depth=2)),
    "MLP-Mixer": _Made("mlp-mixer-pytorch", _IMAGE, lambda: _of("mlp_mixer_pytorch", "MLPMixer")(
        image_size=32, channels=3, patch_size=8, dim=16, depth=2, num_classes=_CLASSES)),
    "Axial attention": _Made("axial_attention", (16, 8, 8), lambda: Ends(_of("axial_attention", "AxialAttention")(
        dim=16, dim_index=1, heads=2, num_dimensions=2), 16, behind=_maps)),
    "EfficientNet-B0": _Made("efficientnet_pytorch", _IMAGE, lambda: _of(
        "efficientnet_pytorch", "EfficientNet").from_name("efficientnet-b0", num_classes=_CLASSES)),
    "TimeSformer": _Made("timesformer-pytorch", _VIDEO, lambda: _of("timesformer_pytorch", "TimeSformer")(
        dim=16, image_size=32, patch_size=16, num_frames=4, num_classes=_CLASSES, depth=1, heads=2, dim_head=8)),
    "ViT": _vit("vit", "ViT", image_size=32, patch_size=8),
    "SimpleViT": _vit("simple_vit", "SimpleViT", image_size=32, patch_size=8),
    "ViT of series": _vit("vit_1d", "ViT", (8, 16), seq_len=16, channels=8, patch_size=4),
    "ViT of volumes": _vit("vit_3d", "ViT", (3, 4, 32, 32), image_size=32, image_patch_size=16, frames=4,
        frame_patch_size=2),
    "DeepViT": _vit("deepvit", "DeepViT", image_size=32, patch_size=8),
    "GCN": _graph("GCNConv"),
    "SAGE": _graph("SAGEConv"),
    "GraphConv": _graph("GraphConv"),
    "TAG": _graph("TAGConv"),
    "Cheb": _graph("ChebConv", K=2),
    "dense GCN": _graph("DenseGCNConv", True),
    "dense SAGE": _graph("DenseSAGEConv", True),
    "dense GIN": _graph("DenseGINConv", True),
    "DenseNet of volumes": _monai("DenseNet", _VOLUME, spatial_dims=3, in_channels=1, out_channels=_CLASSES,
        init_features=8, growth_rate=4, block_config=(2, 2)),
    "U-Net": _monai("UNet", (1, 32, 32), _maps, spatial_dims=2, in_channels=1, out_channels=_CLASSES,
        channels=(4, 8, 16), strides=(2, 2), num_res_units=1),
    "SegResNet": _monai("SegResNet", (1, 32, 32), _maps, spatial_dims=2, in_channels=1, out_channels=_CLASSES,
        init_filters=8, blocks_down=(1, 1), blocks_up=(1,)),
    "Attention U-Net": _monai("AttentionUnet", (1, 32, 32), _maps, spatial_dims=2, in_channels=1,
        out_channels=_CLASSES, channels=(4, 8), strides=(2,)),
    "RetinaNet of MONAI": _Made("monai", _IMAGE, lambda: _Retina()),
    "UNETR": _monai("UNETR", (1, 32, 32), _maps, in_channels=1, out_channels=_CLASSES, img_size=(32, 32),
        spatial_dims=2, feature_size=4, hidden_size=12, mlp_dim=24, num_heads=2),
    "KAN": _Made("pykan", _TABLE, lambda: _of("kan", "KAN")(
        width=[12, 4, 3], grid=3, k=3, auto_save=False, symbolic_enabled=False, save_act=False)),
    "Mamba": _Made("mambapy", _SERIES, lambda: Ends(_of("mambapy.mamba", "Mamba")(
        _of("mambapy.mamba", "MambaConfig")(d_model=8, n_layers=1)), 8, behind=_mean)),
    "Entmax": _Made("entmax", _TABLE, lambda: nn.Sequential(
        nn.Linear(12, 8), _of("entmax", "Entmax15")(dim=-1), nn.Linear(8, _CLASSES))),
    "Sparsemax of entmax": _Made("entmax", _TABLE, lambda: nn.Sequential(
        nn.Linear(12, 8), _of("entmax", "Sparsemax")(dim=-1), nn.Linear(8, _CLASSES))),
    "Leaky neurons": _Made("snntorch", _TABLE, lambda: Ends(nn.Sequential(
        nn.Linear(12, 8), _of("snntorch", "Leaky")(beta=0.9, init_hidden=True)), 8)),
    "Neural ODE": _Made("torchdiffeq", _TABLE, lambda: Ends(_Ode(), 12)),
    "SIREN": _Made("siren-pytorch", _TABLE, lambda: _of("siren_pytorch", "SirenNet")(
        dim_in=12, dim_hidden=16, dim_out=_CLASSES, num_layers=2, w0_initial=3.0)),
    "Vector quantisation": _Made("vector-quantize-pytorch", _SERIES, lambda: Ends(_of(
        "vector_quantize_pytorch", "VectorQuantize")(dim=8, codebook_size=16), 8, behind=_mean)),
    "Finite scalar quantisation": _Made("vector-quantize-pytorch", _SERIES, lambda: Ends(_of(
        "vector_quantize_pytorch", "FSQ")([8, 5, 5], dim=8), 8, behind=_mean)),
    "Mel spectrogram": _Made("nnaudio", (2048,), lambda: Ends(_of("nnAudio.features", "MelSpectrogram")(
        sr=8000, n_fft=256, n_mels=16, hop_length=128, verbose=False), 16, behind=lambda h: h.mean(2))),
    "CIN": _Made("deepctr-torch", (6, 8), lambda: Ends(
        _of("deepctr_torch.layers.interaction", "CIN")(6, (8, 8)), 12)),
    "Interacting layer": _Made("deepctr-torch", (6, 8), lambda: Ends(_of(
        "deepctr_torch.layers.interaction", "InteractingLayer")(8, head_num=2), 8, behind=_mean)),
    "CrossNet": _Made("deepctr-torch", _TABLE, lambda: Ends(
        _of("deepctr_torch.layers.interaction", "CrossNet")(12, 2), 12)),
}  # fmt: skip


class _Second(nn.Module):
    """A network of tables of numbers and classes, without classes."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        return self.body(x, None)


class _Ode(nn.Module):
    """The end of a way along a field that a network gives, in three steps of Runge and Kutta."""

    def __init__(self) -> None:
        super().__init__()
        self.field = nn.Sequential(nn.Linear(12, 12), nn.Tanh(), nn.Linear(12, 12))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return where the way ends."""
        steps = torch.linspace(0, 1, 4)
        return _of("torchdiffeq", "odeint")(lambda time, y: self.field(y), x, steps, method="rk4")[-1]


class _Retina(nn.Module):
    """The scores of all boxes of a RetinaNet, and of each class the best."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 4, 1), nn.ReLU())
        self.head = _of("monai.apps.detection.networks.retinanet_network", "RetinaNetClassificationHead")(
            8, 2, _CLASSES, spatial_dims=2
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return scores."""
        (maps,) = self.head([self.body(x)])
        return maps.reshape(len(x), 2, _CLASSES, -1).amax((1, 3))


def subjects() -> Iterator[Subject]:
    """Return one subject for each architecture."""
    for name, made in _ARCHITECTURES.items():
        yield Subject("packages", name, made.package, partial(_case, name))


def enter(name: str) -> None:
    """Enter an architecture and inputs of noise, as a setup file does."""
    enter_module(name, *_made(name), _CLASSES)


def _case(name: str, folder: Path) -> Case:
    return module_case("packages", name, folder, *_made(name))


@cache
def _made(name: str) -> tuple[nn.Module, NDArray[np.float32]]:
    """Return an architecture with random weights, and inputs for it in 0..1."""
    stand_for_torchvision()
    torch.manual_seed(0)
    network = _ARCHITECTURES[name].build().eval()
    inputs = torch.rand(_INPUTS, *_ARCHITECTURES[name].shape, generator=torch.Generator().manual_seed(0))
    warm(network, inputs)
    return network, inputs.numpy()
