"""Perturbations: noise, relevance-guided noise, transforms and attacks that make new tests of old ones."""

from idc_core.perturbation.attacks import ATTACKS, AttackResult, attack
from idc_core.perturbation.guided import guided_noise
from idc_core.perturbation.noise import random_noise
from idc_core.perturbation.transforms import TRANSFORMS, transform

__all__ = ["ATTACKS", "TRANSFORMS", "AttackResult", "attack", "guided_noise", "random_noise", "transform"]
