"""Adversarial attacks: the smallest or fastest change that makes a network answer wrongly."""

from importlib import import_module
from pkgutil import iter_modules

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

# Menus show what these enter into the registry first, and then what all other files of this folder enter.
_FIRST = ("foolbox_attacks", "pgd_l2", "ddn", "jsma", "boundary", "hop_skip_jump")
for _module in (*_FIRST, *(module.name for module in iter_modules(__path__))):
    import_module(f"{__name__}.{_module}")
