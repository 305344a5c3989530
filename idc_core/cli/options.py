"""Options of methods, which are fields of their settings, on a command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from idc_core.base.parameters import Option
from idc_core.cli.arguments import Name, Number, Numbers


def add_fields(add: Callable[..., argparse.Action], options: Sequence[Option]) -> None:
    """Add what a command line says of a method's options, under their own names in the namespace."""
    for option in filter(lambda option: option.help, options):
        how: dict[str, object] = {"type": Name(str(option.among)), "metavar": "NAME"}
        usual, parameter = "%(default)s", option.parameter
        if "%(choices)s" in option.help:
            how["choices"] = how["type"]
        if isinstance(option.default, bool):
            add(
                option.flag,
                dest=option.name,
                action="store_false" if option.default else "store_true",
                help=option.help,
            )
            continue
        if parameter is not None and isinstance(option.default, tuple):
            usual = ",".join(map(str, option.default))
            how = {"type": Numbers(parameter, usual), "metavar": "K,K,..."}
        elif parameter is not None:
            how = {"type": Number(parameter), "metavar": "N" if parameter.is_whole else "X"}
        help = option.help if option.default is None else f"{option.help} ({usual})"
        add(option.flag, dest=option.name, default=option.default, help=help, **how)


def options_of(arguments: argparse.Namespace, options: Sequence[Option]) -> dict[str, Any]:
    """Return what was said of a method's options, by their names."""
    return {option.name: getattr(arguments, option.name) for option in options if option.help}
