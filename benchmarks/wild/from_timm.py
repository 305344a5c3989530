"""Architectures of timm, the smallest of each family, with random weights: a setup file enters each."""

from __future__ import annotations

import copy
import sys
import types
from collections.abc import Iterator
from functools import cache, partial
from importlib.machinery import ModuleSpec
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

import idc_core as idc
from benchmarks.wild.subjects import Case, Subject

_CLASSES, _INPUTS = 10, 12

_NAMES = """
bat_resnext26ts beit_base_patch16_224 botnet26t_256 caformer_s18 cait_xxs24_224 coat_lite_tiny coat_tiny
coatnet_nano_rw_224 convformer_s18 convit_tiny convmixer_768_32 convnext_atto convnext_zepto_rms convnextv2_atto
cpubone_nano crossvit_tiny_240 cs3darknet_focus_s cspnext_tiny cspresnext50 csatv2 davit_tiny deit3_small_patch16_224
deit_tiny_distilled_patch16_224 deit_tiny_patch16_224 densenet121 dla46_c dpn68 ecaresnet26t edgenext_xx_small
efficientformer_l1 efficientformerv2_s0 efficientnet_b0 efficientnet_cc_b0_4e efficientvim_m1 efficientvit_b0
efficientvit_m0 ese_vovnet19b_slim_dw eva02_tiny_patch14_224 fasternet_t0 fastvit_t8 fbnetc_100 fbnetv3_b
flexivit_small focalnet_tiny_srf gcresnext26ts gcvit_xxtiny gemma4_vit_167m gernet_s ghostnet_050 ghostnetv2_100
ghostnetv3_050 gmixer_12_224 gmlp_ti16_224 halonet26t hardcorenas_a hgnet_tiny hgnetv2_b0 hiera_tiny_224
hrnet_w18_small iformer_t inception_next_atto inception_resnet_v2 inception_v3 inception_v4 lambda_resnet26t lcnet_035
lcnetv2_small legacy_seresnet18 levit_128s levit_conv_128s lowformer_b0 mambaout_femto maxvit_pico_rw_256
maxxvit_rmlp_nano_rw_256 mixer_s32_224 mixnet_s mnasnet_small mobilenetv3_small_050 mobilenetv4_conv_small_035
mobilenetv4_hybrid_medium_075 mobileone_s0 mobilevit_xxs mobilevitv2_050 mvitv2_tiny naflexvit_base_patch16_gap
nasnetalarge nest_tiny nextvit_small nf_regnet_b0 nfnet_l0 pit_ti_224 pnasnet5large poolformer_s12 poolformerv2_s12
pvt_v2_b0 qwen3_vit_88m rdnet_tiny regnetx_002 regnety_002 regnetz_b16 repghostnet_050 repvgg_a0 repvit_m0_9
res2net50_14w_8s resmlp_12_224 resnest14d resnet10t resnetv2_18 resnext26ts rexnet_100 sam2_hiera_tiny
samvit_base_patch16_224 selecsls42 sequencer2d_s seresnet18 shvit_s1 skresnet18 spnasnet_100 starnet_s050
swiftformer_xs swin_s3_tiny_224 swin_tiny_patch4_window7_224 swinv2_cr_tiny_ns_224 swinv2_tiny_window8_256
tiny_vit_5m_224 tinynet_e tnt_s_patch16_224 tresnet_m twins_pcpvt_small twins_svt_small vgg11 visformer_tiny
vit_pe_spatial_tiny_patch16_512 vit_relpos_small_patch16_224 vit_small_patch16_dinov3 vit_small_patch16_rope_224
vit_srelpos_small_patch16_224 vit_tiny_patch16_224 vit_tiny_r_s16_p8_224 vitamin_small_224 volo_d1_224
xception41p xcit_nano_12_p16_224
"""


def subjects() -> Iterator[Subject]:
    """Return one subject for each architecture."""
    for name in _NAMES.split():
        yield Subject("timm", name, "timm", partial(_case, name), by_library=True)


def enter(name: str) -> None:
    """Enter an architecture and pictures of noise, as a setup file does."""
    enter_module(name, *_made(name), _CLASSES)


def enter_module(name: str, network: nn.Module, inputs: NDArray[np.float32], count: int) -> None:
    """Enter a network and its inputs, of `count` classes in turn; two thirds are training inputs."""
    classes, train, data = np.arange(len(inputs)) % count, 2 * len(inputs) // 3, f"noise for {name}"

    @idc.dataset(data, class_names=tuple(f"kind {number}" for number in range(count)))
    def read(split: str) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        some = slice(train) if split == "train" else slice(train, None)
        return inputs[some], classes[some]

    @idc.network(name, data=data)
    def build() -> nn.Module:
        return copy.deepcopy(network)


def _case(name: str, folder: Path) -> Case:
    return module_case("timm", name, folder, *_made(name))


def module_case(source: str, name: str, folder: Path, network: nn.Module, inputs: NDArray[np.float32]) -> Case:
    """Return a network that a setup file enters by `enter` of its source."""
    setup = folder / "setup.py"
    setup.write_text(f"from benchmarks.wild.from_{source} import enter\n\nenter({name!r})\n")

    def runtime(given: NDArray[np.generic]) -> dict[str, NDArray[np.generic]]:
        with torch.no_grad():
            return {"scores": network(torch.from_numpy(given)).numpy()}

    return Case(name, inputs, runtime, setup=setup)


@cache
def _made(name: str) -> tuple[nn.Module, NDArray[np.float32]]:
    """Return an architecture and pictures of the smallest of some sizes that it takes."""
    stand_for_torchvision()
    import timm

    own = timm.get_pretrained_cfg(name).input_size[-1]
    for size, options in ((96, {}), (96, {"img_size": 96}), (128, {"img_size": 128}), (own, {})):
        if size > own:
            continue
        torch.manual_seed(0)
        try:
            network = timm.create_model(name, num_classes=_CLASSES, **options).eval()
            pictures = _pictures(size)
            with torch.no_grad():
                network(pictures[:1])
        except (AssertionError, IndexError, RuntimeError, TypeError, ValueError):
            if size == own and not options:
                raise
            continue
        warm(network, pictures)
        return network, pictures.numpy()
    raise AssertionError(f"{name} takes no pictures")


def _pictures(size: int) -> torch.Tensor:
    """Return smooth pictures with noise, values in 0..1."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(_INPUTS, 3, 6, 6, generator=generator)
    smooth = nn.functional.interpolate(coarse, (size, size), mode="bicubic")
    return (smooth + 0.15 * torch.randn(smooth.shape, generator=generator)).clamp(0, 1)


def warm(network: nn.Module, pictures: torch.Tensor) -> None:
    """Give batch normalisation the moments of the pictures, and what begins as one number different ones."""
    norms = [module for module in network.modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.numel() > 1 and bool((parameter == parameter.flatten()[0]).all()):
                parameter.add_(0.1 * torch.randn_like(parameter))
        for norm in norms:
            norm.reset_running_stats()
            norm.momentum = None
            norm.train()
        network(pictures)
        network.eval()


def stand_for_torchvision() -> None:
    """Let timm import transforms of torchvision, which it does not use here, where that is not installed."""
    if not any(isinstance(finder, _Nothing) for finder in sys.meta_path):
        sys.meta_path.append(_Nothing())


class _Nothing:
    """Finds every module of torchvision, and nothing in it but names."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return what to import a module by."""
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] == "torchvision" else None

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Return a module of which every name is a class without anything."""
        return _Names(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Run nothing."""


class _Names(types.ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Named(name, (), {})


class _Named(type):
    def __getattr__(cls, name: str) -> str:
        if name.startswith("__"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"
