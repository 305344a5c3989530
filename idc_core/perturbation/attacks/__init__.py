"""Adversarial attacks: the smallest or fastest change that makes a network answer wrongly."""

from importlib import import_module

from idc_core.perturbation.attacks.registry import ATTACKS, Attack, Batch, Preset, register_attack
from idc_core.perturbation.attacks.result import AttackResult, join_results
from idc_core.perturbation.attacks.runner import assess, attack

__all__ = [
    "ATTACKS",
    "Attack",
    "AttackResult",
    "Batch",
    "Preset",
    "assess",
    "attack",
    "join_results",
    "register_attack",
]

# In the order in which menus show what they enter into the registry.
for _family in ("foolbox_attacks", "pgd_l2", "ddn", "jsma", "boundary", "hop_skip_jump"):
    import_module(f"{__name__}.{_family}")
