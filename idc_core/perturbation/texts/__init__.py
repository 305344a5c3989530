"""Changes of texts that a hand could make: typos, synonyms, words dropped and swapped; one file each."""

from importlib import import_module
from pkgutil import iter_modules

from idc_core.perturbation.texts.registry import TEXT_CHANGES, TextChange, change_texts, register_text_change

__all__ = ["TEXT_CHANGES", "TextChange", "change_texts", "register_text_change"]

# A file with a change needs no entry elsewhere.
for _module in iter_modules(__path__):
    import_module(f"{__name__}.{_module.name}")
