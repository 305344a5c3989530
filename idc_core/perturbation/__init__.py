"""Perturbations: noise, transforms, changes of texts, corruptions and attacks make new tests of old ones."""

from importlib import import_module
from pkgutil import iter_modules

from idc_core.perturbation.attacks import ATTACKS, AttackResult, Batch, attack, register_attack
from idc_core.perturbation.corruptions import CORRUPTIONS, corrupt
from idc_core.perturbation.guided import guided_noise
from idc_core.perturbation.noise import random_noise
from idc_core.perturbation.texts import TEXT_CHANGES, change_texts, register_text_change
from idc_core.perturbation.transforms import TRANSFORMS, register_transform, transform

__all__ = [
    "ATTACKS",
    "CORRUPTIONS",
    "TEXT_CHANGES",
    "TRANSFORMS",
    "AttackResult",
    "Batch",
    "attack",
    "change_texts",
    "corrupt",
    "guided_noise",
    "random_noise",
    "register_attack",
    "register_text_change",
    "register_transform",
    "transform",
]

# A file with a transform needs no entry elsewhere.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
