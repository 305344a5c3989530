"""`train`: train a network of the registry by its recipe, and write its weights and card."""

from __future__ import annotations

import argparse

from idc_core.base.ranges import EPOCH, SEED
from idc_core.cli.arguments import DEVICE, Distinct, FolderToWrite, Name, Number
from idc_core.cli.console import ProgressLine, Subparsers


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `train`."""
    parser = subparsers.add_parser(
        "train",
        help="train a network by its recipe and write its weights and card",
        description="Trains a network from its seed. On the CPU the default seed gives the weights that come "
        "with the project. `list` shows the names.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("name", type=Name("models"), metavar="NAME", help="the network, for example lenet5-digits")
    seed = "fixes first weights, order and dropout (%(default)s)"
    add("--seed", type=Number(SEED), default=0, metavar="N", help=seed)
    add("--device", type=DEVICE, default="cpu", metavar="NAME", help="where to train (%(default)s)")
    add(
        "--out",
        type=FolderToWrite(),
        metavar="FOLDER",
        help="where to write (the project's own assets/weights; with --checkpoints nowhere: the last checkpoint "
        "holds what was reached)",
    )
    add(
        "--checkpoints",
        type=Number(EPOCH),
        action=Distinct,
        nargs="*",
        metavar="EPOCH",
        help="keep the weights before training, after these epochs and at the end, in IDC_HOME/checkpoints/NAME, where "
        "the studio finds them (without epochs: every one of up to 10, else 1, 2, 4, 8 and so on)",
    )
    add("--shipped", action="store_true", help="keep them as the project ships them: small, in assets/checkpoints/NAME")


def run(arguments: argparse.Namespace) -> int:
    """Train, say what was reached and where it was written, and return the exit status."""
    from idc_core.models import CheckpointRecorder, train
    from idc_core.models.card import WEIGHTS_FOLDER
    from idc_core.models.checkpoints import SHIPPED_FOLDER, kept_folder

    name, recorder, out = arguments.name, None, arguments.out
    if arguments.checkpoints is not None or arguments.shipped:
        folder = SHIPPED_FOLDER / name if arguments.shipped else kept_folder(name)
        recorder = CheckpointRecorder(folder, tuple(arguments.checkpoints or ()), arguments.shipped)
    elif out is None:
        out = WEIGHTS_FOLDER
    with ProgressLine() as progress:
        card = train(
            name, out=out, seed=arguments.seed, device=arguments.device, recorder=recorder, on_progress=progress
        )
    print(f"{card.label}: {card.parameters:,} parameters, fingerprint {card.fingerprint}")
    for metric, value in card.metrics.items():
        print(f"  {metric.replace('_', ' ')}: {value:.4f}")
    if out is not None:
        print(f"Written to {out / card.name}.safetensors, with its card beside it.")
    if recorder is not None:
        from idc_core.models.checkpoints import read_series

        series = read_series(name, recorder.folder)
        there = ", ".join(map(str, series.epochs)) if series is not None else "none"
        print(f"Checkpoints of the epochs {there} are in {recorder.folder}.")
    return 0
