"""Perturbations: noise, relevance-guided noise, transforms and attacks that make new tests of old ones."""

from idc_core.perturbation.attacks import ATTACKS, AttackResult, Batch, attack, register_attack
from idc_core.perturbation.guided import guided_noise
from idc_core.perturbation.noise import random_noise
from idc_core.perturbation.transforms import TRANSFORMS, register_transform, transform

__all__ = [
    "ATTACKS",
    "TRANSFORMS",
    "AttackResult",
    "Batch",
    "attack",
    "guided_noise",
    "random_noise",
    "register_attack",
    "register_transform",
    "transform",
]
