"""`verify`: whether a network's units respond to a hypothesis itself, or to something correlated with it."""

from __future__ import annotations

import argparse

from idc_core.base.files import COMMAND
from idc_core.base.ranges import INPUTS, PAIRS, SEED, SETS, UNITS
from idc_core.cli.arguments import FileToWrite, Name, Number, Text, Word
from idc_core.cli.console import ProgressLine, Subparsers, check_fit, check_layers, comma_separated, table, write_whole
from idc_core.cli.executors import add_engine, executor_of, source_of


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `verify`."""
    parser = subparsers.add_parser(
        "verify",
        help="swap symbols to test whether units respond to a hypothesis itself",
        description="Swaps symbols of texts so that a hypothesis stays true or becomes false. Tests whether the units "
        "with the highest scores on it separate the two kinds of swaps better than random units.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("model", type=Name("models"), metavar="MODEL", help="the network, for example charlstm-sql")
    add(
        "hypothesis",
        type=Text(),
        metavar="HYPOTHESIS",
        help="its name as `inspect` prints it, for example 'is a digit'",
    )
    add("--data", type=Name("data"), metavar="NAME", help="the data set (the network's own)")
    add("--split", type=Word(("test", "train")), default="test", metavar="{test,train}", help="its split (%(default)s)")
    add("--limit", type=Number(INPUTS), metavar="N", help="use only the first N records")
    add("--layer", type=Text(), metavar="NAME", help="the layer (the network's default layer)")
    ranks, units = (
        "the measure that ranks its units (%(default)s)",
        "number of units with the highest scores (%(default)s)",
    )
    add("--measure", type=Name("measures"), metavar="NAME", default="pearson", help=ranks)
    add("--units", type=Number(UNITS), default=10, metavar="N", help=units)
    swaps = "random symbols, or other derivations by the grammar"
    add("--swaps", type=Word(("symbols", "grammar")), metavar="{symbols,grammar}", help=swaps)
    add("--pairs", type=Number(PAIRS), default=200, metavar="N", help="swaps per kind (%(default)s)")
    add("--sets", type=Number(SETS), default=99, metavar="N", help="random sets of as many units (%(default)s)")
    add("--seed", type=Number(SEED), default=0, metavar="N", help="fixes swaps and random sets (%(default)s)")
    add("--out", type=FileToWrite(), metavar="FILE", help="also write the silhouette of every set to FILE as CSV")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Verify, print and write the result, and return the exit status."""
    from idc_core.datasets import load_dataset
    from idc_core.errors import SettingError
    from idc_core.inspection import library
    from idc_core.inspection.result import grid
    from idc_core.inspection.verification import CONFIRMED, swapped_by_grammar, verify
    from idc_core.models import load_model
    from idc_core.work.inspections import inspect_units

    open_executor = executor_of(arguments)
    model = load_model(arguments.model)
    layer = arguments.layer or model.card.default_layer
    check_layers(model, [layer])
    check_fit(model.card, arguments.data or model.card.dataset)
    with ProgressLine() as progress:
        data = load_dataset(
            arguments.data or model.card.dataset, arguments.split, arguments.limit, on_progress=progress
        )
        known = {one.name: one for one in library(data)}
        if arguments.hypothesis not in known:
            raise SettingError(
                f"There is no hypothesis {arguments.hypothesis!r} about {data.name}; its names are printed by: "
                f"{COMMAND} inspect {arguments.model} --most {len(known)}"
            )
        hypothesis = known[arguments.hypothesis]
        swapped_by_grammar(data, hypothesis, arguments.swaps)
        with open_executor() as executor:
            inspected = inspect_units(
                executor,
                source_of(arguments, model, data, arguments.limit),
                None,
                [arguments.measure],
                [layer],
                only=hypothesis.name,
                seed=arguments.seed,
                on_progress=progress,
            )
        ranked = grid(inspected, arguments.measure, model.card.name, layer).units_of(0)
        if 2 * arguments.units > len(ranked):
            raise SettingError(
                f"--units is {arguments.units}, but {layer} has {len(ranked)} units, of which at most half can be "
                f"compared with random ones: give --units {max(1, len(ranked) // 2)}, or another --layer."
            )
        units = ranked[: arguments.units]
        result = verify(
            model,
            layer,
            units.tolist(),
            data,
            hypothesis,
            pairs=arguments.pairs,
            sets=arguments.sets,
            seed=arguments.seed,
            swaps=arguments.swaps,
            on_progress=progress,
        )
    heading = ("UNITS", "SILHOUETTE", "KEPT TRUE", "MADE FALSE", "AS WELL OR BETTER")
    row = (
        " ".join(map(str, units)),
        f"{result.silhouette:+.3f}",
        str(len(result.baseline)),
        str(len(result.treatment)),
        f"{100 * result.p_value:.0f} % of {len(result.random) + 1} sets",
    )
    print(table([heading, row], "<>>>>"))
    print(
        f"\n{hypothesis.name}: {'confirmed' if result.confirmed else 'not confirmed'}. Confirmed: at most "
        f"{100 * CONFIRMED:g} % of the sets, the chosen one included, separate the two kinds of swaps as well. Mean "
        f"silhouette of random sets: {result.random.mean():+.3f}."
    )
    if result.few:
        print("Few swaps of one kind were found: the result is uncertain.")
    if arguments.out is not None:
        chosen = {"units": "highest scores", "silhouette": result.silhouette}
        drawn = [{"units": "random", "silhouette": one} for one in result.random.tolist()]
        write_whole(arguments.out, comma_separated([chosen, *drawn]), "--out")
        print(f"written to {arguments.out}")
    return 0
