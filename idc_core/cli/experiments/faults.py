"""Records of how well distinct faults are predicted of networks that nothing was learned on."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, get_args

from idc_core.cli.experiments.base import Experiment, Record
from idc_core.cli.experiments.worth import NETWORKS
from idc_core.errors import DataError, SettingError

if TYPE_CHECKING:
    from idc_core.base.progress import Progress
    from idc_core.store.cache import Record as Kept


def _run(arguments: argparse.Namespace, models: Sequence[str], on_progress: Progress) -> list[Record]:
    """Make the suites of each network, once; return a record a network and score, or why a network has none."""
    from idc_core.worth.documents import write_documents
    from idc_core.worth.fault_suites import suites_of_network
    from idc_core.worth.prediction import Score, left_out
    from idc_core.worth.published import write_record

    if arguments.engine or arguments.address or arguments.retrain:
        raise SettingError("--engine, --address and --retrain are for worth; leave them out of faults.")
    found: dict[str, Kept] = {}
    missing: list[Record] = []
    for name in models:
        try:
            found[name] = suites_of_network(name, fresh=arguments.fresh, on_progress=on_progress)
        except DataError as error:
            missing.append({"network": name, "why": str(error)})
    if arguments.publish:
        for record in found.values():
            write_record(record)
        write_documents()
    records: list[Record] = []
    for score in get_args(Score):
        for row in left_out(found, score):
            about: Record = {"network": row.network, "faults": found[row.network]["faults"], "score": score}
            records.append(about | {"error": row.error, "bias": row.bias, "held": row.held, "margin": row.margin})
    return [*records, *missing]


EXPERIMENTS = (
    Experiment(
        "faults",
        "how well do other networks' suites tell which share of the distinct faults a suite finds?",
        (*NETWORKS, "textcnn-20newsgroups", "texttransformer-20newsgroups"),
        ("network", "faults", "score", "error", "bias", "held", "margin", "why"),
        lambda arguments, name, on_progress: _run(arguments, (name,), on_progress),
        together=_run,
    ),
)
