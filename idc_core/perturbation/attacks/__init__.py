"""Adversarial attacks: the smallest or fastest change that makes a network answer wrongly."""

from idc_core.perturbation.attacks import carlini_wagner, gradient, jsma
from idc_core.perturbation.attacks.registry import ATTACKS, Attack, Preset, find_attack
from idc_core.perturbation.attacks.result import AttackResult
from idc_core.perturbation.attacks.running import attack

__all__ = ["ATTACKS", "Attack", "AttackResult", "Preset", "attack", "carlini_wagner", "find_attack", "gradient", "jsma"]
