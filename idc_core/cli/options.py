"""Options of methods, which are fields of their settings, on a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from idc_core.base.parameters import Option
from idc_core.cli.arguments import Name, Number, Numbers


def add_fields(add: Callable[..., argparse.Action], options: Sequence[Option]) -> None:
    """Add what a command line says of a method's options, under their own names in the namespace."""
    for one in filter(lambda one: one.help, options):
        how: dict[str, Any] = {"type": Name(str(one.among)), "metavar": "NAME"}
        usual, asked = "%(default)s", one.parameter
        if "%(choices)s" in one.help:
            how["choices"] = how["type"]
        if isinstance(one.default, bool):
            add(one.flag, dest=one.name, action="store_false" if one.default else "store_true", help=one.help)
            continue
        if asked is not None and isinstance(one.default, tuple):
            usual = ",".join(map(str, one.default))
            how = {"type": Numbers(asked, usual), "metavar": "K,K,..."}
        elif asked is not None:
            how = {"type": Number(asked), "metavar": "N" if asked.is_whole else "X"}
        help = one.help if one.default is None else f"{one.help} ({usual})"
        add(one.flag, dest=one.name, default=one.default, help=help, **how)


def options_of(arguments: argparse.Namespace, options: Sequence[Option]) -> dict[str, Any]:
    """Return what was said of a method's options, by their names."""
    return {one.name: getattr(arguments, one.name) for one in options if one.help}
