"""`differential`: pictures on which networks for one task disagree, as text, as npz and as CSV."""

from __future__ import annotations

import argparse
import io
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from idc_core.base.parameters import MOST_WHOLE, Parameter, shown
from idc_core.base.ranges import SEARCH, STARTS, M
from idc_core.cli.arguments import Assignment, Distinct, FileToWrite, Name, Network, Number, Text
from idc_core.cli.console import ProgressLine, Subparsers, check_fit, comma_separated, table, write_whole
from idc_core.cli.executors import add_engine, executor_of, source_of
from idc_core.cli.options import add_fields, options_of
from idc_core.errors import SettingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from idc_core.base.progress import Progress
    from idc_core.coverage.registry import Criterion
    from idc_core.datasets import Dataset
    from idc_core.generation import Constraint, Disagreements
    from idc_core.generation.ascent import AscentSettings
    from idc_core.models import Network as OpenNetwork

_MODELS = ("lenet5-digits", "lenet1-digits", "lenet4-digits")

_TOLD = ("models", "choose", "seeds", "cell", "constraint", "set", "guide")
"""Options that a search follows from beside those of how it climbs, for the list of runs."""

_VALUE = Parameter("value", "Value", "Of a parameter; its own range is looked up.", 0.0, -MOST_WHOLE, MOST_WHOLE)


class Guide(Name):
    """A criterion that can guide a search, or none."""

    def __iter__(self) -> Iterator[str]:
        """Yield the names; the engine takes a second to import."""
        from idc_core.generation import guides

        return iter([*guides(), "none"])

    def read(self, text: str) -> str:
        """Return the name."""
        if text not in list(self):
            raise SettingError(f"must be a criterion that can guide a search: {', '.join(self)}, not {shown(text)}")
        return text


def add_parser(subparsers: Subparsers) -> None:
    """Add the parser of `differential`."""
    parser = subparsers.add_parser(
        "differential",
        help="search for pictures on which networks for one task disagree",
        description="Changes test pictures, within a constraint, until networks for one task disagree (Pei et al., "
        "DeepXplore, SOSP 2017). The same settings give the same pictures; only the seconds, on stderr, differ.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    models = (
        "two networks or more; NAME=FILE takes the weights of a safetensors file, with its card beside it, NAME:BITS "
        f"is a copy with weights of so many bits ({' '.join(_MODELS)})"
    )
    add("--models", type=Network(), action=Distinct, nargs="+", default=list(_MODELS), metavar="NAME", help=models)
    own = "the data set whose tests are the seeds (the first network's own)"
    add("--data", type=Name("data"), metavar="NAME", help=own)
    add("--seeds", type=Number(STARTS), default=50, metavar="N", help="how many tests to start from (%(default)s)")
    ways = Name("seeds")
    add("--choose", type=ways, choices=ways, default="random", metavar="WAY", help="one of %(choices)s (%(default)s)")
    rules = "how pictures may be changed: %(choices)s (%(default)s)"
    allowed = Name("constraints")
    add("--constraint", type=allowed, choices=allowed, default="light", metavar="NAME", help=rules)
    value = Assignment("--set NAME=VALUE with a number, such as limit=0.5", _VALUE)
    several = "parameters of the constraint"
    add("--set", type=value, action=Distinct, nargs="+", default=[], metavar="NAME=VALUE", help=several)
    guide = "criterion whose uncovered targets are aimed at: %(choices)s (%(default)s)"
    aimed = Guide("criteria")
    add("--guide", type=aimed, choices=aimed, default="nc", metavar="NAME", help=guide)
    add_fields(add, SEARCH)
    near = "with --choose cell: seeds close to it, such as 2-1-0-0-1-0 (an uncovered one)"
    cell = Text(r"[0-9]{1,3}(-[0-9]{1,3})*", "a cell such as 2-1-0-0-1-0")
    add("--cell", type=cell, metavar="CELL", help=near)
    add("--m", type=Number(M), metavar="N", help=f"important neurons, for cells ({M.default}, or all of fewer)")
    add("--out", type=FileToWrite(), metavar="FILE", help="write pictures, seeds and predictions to FILE as npz")
    add("--csv", type=FileToWrite(), metavar="FILE", help="write one row per picture to FILE")
    add_engine(parser)


def run(arguments: argparse.Namespace) -> int:
    """Search, print the result, write it where asked, and return the exit status."""
    from idc_core.datasets import load_dataset
    from idc_core.generation.constraints import as_seeds
    from idc_core.runs import Planned, settings_of
    from idc_core.work.searches import search_seeds

    if len(arguments.models) < 2:
        raise SettingError("A difference needs at least two models; name them behind --models.")
    settings, open_executor = _settings(arguments), executor_of(arguments)
    _check_cell(arguments)
    with ProgressLine() as progress:
        models = [_open_named(name) for name in arguments.models]
        _check_task(arguments.models, models)
        data = arguments.data or models[0].card.dataset
        check_fit(models[0].card, data)
        test = load_dataset(data, "test", on_progress=progress)
        positions = _seeds(arguments, models[0], test, progress)

        def search(on_progress: Progress | None) -> Disagreements:
            guidance = _guidance(arguments, models, train, test, progress)
            named = [_anywhere(name) for name in arguments.models]
            opened = dict(zip(named, models, strict=True))
            source = replace(
                source_of(arguments, models[0], test, None),
                model=named[0],
                open_model=_open_named,
                live=(opened.__getitem__, test),
            )
            with open_executor() as executor:
                return search_seeds(
                    executor, source, named, models, positions, settings, guidance, on_progress=on_progress
                )

        given = {name: getattr(arguments, name) for name in _TOLD if getattr(arguments, name) is not None}
        given |= {option.flag.removeprefix("--"): getattr(arguments, option.name) for option in SEARCH}
        prints = tuple(model.card.fingerprint for model in models)
        train = _learnt_from(arguments, models, progress)
        learnt = () if train is None else (train.fingerprint,)
        key = ("command", prints, test.fingerprint, positions.tolist(), arguments.m, *learnt, *sorted(given.items()))
        _run = settings_of(models[0].card, None, test, models[0].card.default_layer, arguments.m, **given)
        disagreements = Planned("searches", key, search, _run).kept(progress)
    seeds = as_seeds(test.inputs[positions]).numpy()[disagreements.seed_index]
    names = list(arguments.models)
    print(_render(names, disagreements, seeds))
    if disagreements.found and disagreements.seconds > 0:
        rate = disagreements.found / disagreements.seconds
        print(f"{disagreements.seconds:.2f} s, {rate:.0f} disagreements per second", file=sys.stderr)
    records = _records(names, disagreements, seeds, test, positions)
    if arguments.csv is not None:
        write_whole(arguments.csv, comma_separated(records, ["seed"]), "--csv")
        print(f"\nwritten to {arguments.csv}")
    if arguments.out is not None:
        _write(arguments.out, names, disagreements, seeds, test, positions)
        print(f"\nwritten to {arguments.out}")
    return 0


def _settings(arguments: argparse.Namespace) -> AscentSettings:
    from idc_core.generation.ascent import AscentSettings

    none = {"weight_coverage": 0.0} if arguments.guide == "none" else {}
    options = options_of(arguments, SEARCH) | none
    return AscentSettings(constraint=_constraint(arguments.constraint, arguments.set), **options)


def _open_named(text: str) -> OpenNetwork:
    """Load a network: NAME, NAME=FILE or NAME:BITS."""
    from idc_core.generation import rounded
    from idc_core.models import load_model

    name, _, file = text.partition("=")
    if file:
        return load_model(name, weights=Path(file))
    name, colon, bits = text.partition(":")
    if not colon:
        return load_model(name)
    return cast("OpenNetwork", rounded(load_model(name), int(bits)))  # a copy, of the same class


def _anywhere(text: str) -> str:
    """Return the name of a network as a process in another folder takes it."""
    name, _, file = text.partition("=")
    return f"{name}={Path(file).absolute()}" if file else text


def _check_task(names: list[str], models: list[OpenNetwork]) -> None:
    """Refuse networks for different tasks before any work."""
    from idc_core.datasets import DATASETS

    own = [DATASETS[model.card.dataset] for model in models]
    tasks = [(data.input_shape, data.task, data.class_names) for data in own]
    for name, data, task in zip(names, own, tasks, strict=True):
        if task != tasks[0]:
            raise SettingError(
                f"{names[0]} is for {own[0].label} and {name} for {data.label}; expected networks for one task."
            )


def _check_cell(arguments: argparse.Namespace) -> None:
    """Refuse a cell that is of another number of neurons, or not asked for; m is by default its own."""
    if arguments.cell is None:
        return
    if arguments.choose != "cell":
        raise SettingError("--cell is for --choose cell: leave it out, or choose seeds so.")
    given = arguments.cell.count("-") + 1
    if arguments.m is None:
        arguments.m = given
    if given != arguments.m:
        raise SettingError(f"--cell has {given} clusters; expected one for each of --m {arguments.m} neurons.")


def _constraint(name: str, given: list[tuple[str, str]]) -> Constraint:
    from idc_core.base.parameters import settle
    from idc_core.generation import CONSTRAINTS
    from idc_core.generation.constraints import find_constraint

    usual = find_constraint(name)
    parameters = {parameter.name: parameter for parameter in usual.card.parameters}
    of = usual.card.label
    values = {key: parameters[key].read(value, of) if key in parameters else value for key, value in given}
    return CONSTRAINTS[name](**settle(usual.card.parameters, values, of))


def _seeds(arguments: argparse.Namespace, model: OpenNetwork, test: Dataset, progress: Progress) -> NDArray[np.int64]:
    """Return the positions of the tests to start from."""
    from idc_core.analysis.analysis import analyze
    from idc_core.coverage.cell_table import tabulate
    from idc_core.datasets import load_dataset
    from idc_core.generation import Pool, choose_seeds
    from idc_core.generation.cell_search import CellSpace
    from idc_core.generation.seeds import uncovered_beside
    from idc_core.tracing.trace import collect

    analysis, cell = None, None
    if arguments.choose == "cell":
        train = load_dataset(model.card.dataset, "train", on_progress=progress)
        analysis = analyze(model, train, test, model.card.default_layer, arguments.m, on_progress=progress)
        space = CellSpace.of(analysis)
        usual = uncovered_beside(tabulate(analysis.assignments, space.sizes))
        cell = space.cell(arguments.cell) if arguments.cell else usual
        if cell is None:
            raise SettingError("The tests reach every cell: choose seeds otherwise than by --choose cell.")
    scores = collect(model, test, [], on_progress=progress).scores
    return choose_seeds(
        Pool(test.targets, scores, analysis, cell=cell), arguments.choose, arguments.seeds, arguments.seed
    )


def _learnt_from(arguments: argparse.Namespace, models: list[OpenNetwork], progress: Progress) -> Dataset | None:
    """Return the training inputs that guiding criteria are fitted on; None where none guides, or one that need not."""
    from idc_core.datasets import load_dataset

    if arguments.guide in ("nc", "none"):
        return None
    return load_dataset(models[0].card.dataset, "train", on_progress=progress)


def _guidance(
    arguments: argparse.Namespace, models: list[OpenNetwork], train: Dataset | None, test: Dataset, progress: Progress
) -> list[Criterion] | None:
    """Return the criteria that guide the search; None for neuron coverage by the disagreements alone, or for none."""
    from idc_core.generation import make_guidance

    if train is None:
        return None
    m = int(M.default) if arguments.m is None else arguments.m
    return make_guidance(arguments.guide, models, train, test, m=m, on_progress=progress)


def _render(names: list[str], found: Disagreements, seeds: NDArray[np.float32]) -> str:
    """Return the result of a search as the text that the command prints."""
    from statistics import median

    from idc_core.generation import distances, has_majority, majority, outvoted

    if not found.found:
        return found.message
    bound = found.settings["bound"] if found.predictions.dtype.kind == "f" else None
    away, votes = distances(found.inputs[found.made], seeds[found.made]), majority(found.predictions, bound)
    against = outvoted(found.predictions[found.made], bound)
    rows = [("MODEL", "OUTVOTED ON")]
    rows += [(name, f"{number:,}") for name, number in zip(names, against, strict=True)]
    steps = found.iterations[found.made].tolist()
    facts = [
        ("share of seeds that agree", f"{100 * found.share:.1f} %"),
        ("steps, median", f"{median(steps):g}"),
        ("with a majority", f"{int(has_majority(votes[found.made]).sum()):,}"),
        ("mean L1 distance", f"{away.diversity:.2f}"),
        ("mean L2 distance", f"{away.l2.mean():.2f}"),
        ("largest L-inf distance", f"{away.linf.max():.3f}"),
    ]
    return "\n\n".join((found.message, table(facts, "<>"), table(rows, "<>")))


def _records(
    names: list[str], found: Disagreements, seeds: NDArray[np.float32], test: Dataset, positions: NDArray[np.int64]
) -> list[dict[str, object]]:
    from idc_core.generation import distances, majority

    bound = found.settings["bound"] if found.predictions.dtype.kind == "f" else None
    away, votes = distances(found.inputs, seeds), majority(found.predictions, bound)
    origin = positions[found.seed_index]
    return [
        {
            "seed": int(test.ids[origin[row]]),
            "target": test.targets[origin[row]].item(),
            **{name: prediction.item() for name, prediction in zip(names, found.predictions[row], strict=True)},
            "majority": votes[row].item(),
            "steps": int(found.iterations[row]),
            "l1": float(away.l1[row]),
            "l2": float(away.l2[row]),
            "linf": float(away.linf[row]),
        }
        for row in range(len(found))
    ]


def _write(
    path: Path,
    names: list[str],
    found: Disagreements,
    seeds: NDArray[np.float32],
    test: Dataset,
    positions: NDArray[np.int64],
) -> None:
    """Write the disagreements as an npz file."""
    import numpy as np

    origin = positions[found.seed_index]
    content = io.BytesIO()
    np.savez_compressed(
        content,
        inputs=found.inputs,
        seeds=seeds,
        seed_ids=test.ids[origin],
        seed_targets=test.targets[origin],
        predictions=found.predictions,
        iterations=found.iterations,
        models=np.array(names),
        settings=np.array(json.dumps({name: str(value) for name, value in found.settings.items()})),
    )
    write_whole(path, content.getvalue(), "--out")
