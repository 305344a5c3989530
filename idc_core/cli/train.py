"""`train`: train a network of the registry by its recipe, and write its weights and card."""

from __future__ import annotations

import argparse
from pathlib import Path

from idc_core.cli.console import ProgressLine, Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `train`."""
    parser = subparsers.add_parser(
        "train",
        help="train a network by its recipe and write its weights and card",
        description="Trains a network from its seed. On the CPU the default seed gives the weights that come "
        "with the project. `python -m idc_core list` shows the names.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("name", metavar="NAME", help="the network, for example lenet5-digits")
    add(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="fixes first weights, order and dropout (%(default)s)",
    )
    add("--device", choices=("cpu", "cuda"), default="cpu", help="where to train (%(default)s)")
    add("--out", type=Path, metavar="FOLDER", help="where to write (the project's own assets/weights)")


def run(arguments: argparse.Namespace) -> int:
    """Train, say what was reached and where it was written, and return the exit status."""
    from idc_core.models import train
    from idc_core.models.weights import WEIGHTS_FOLDER

    folder = WEIGHTS_FOLDER if arguments.out is None else arguments.out
    with ProgressLine() as progress:
        card = train(arguments.name, out=folder, seed=arguments.seed, device=arguments.device, on_progress=progress)
    print(f"{card.label}: {card.parameters:,} parameters, fingerprint {card.fingerprint}")
    for name, value in card.metrics.items():
        print(f"  {name.replace('_', ' ')}: {value:.4f}")
    print(f"Written to {folder / card.name}.safetensors, with its card beside it.")
    return 0
