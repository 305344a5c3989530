"""The experiments of the command line: a module an experiment or a family of them; `EXPERIMENTS` lists all."""

from idc_core.cli.experiments import ablation, cells_reached, disagreements, rq1, rq6, stopping, suites
from idc_core.cli.experiments.base import Experiment, Record

__all__ = ["EXPERIMENTS", "Experiment", "Record"]

EXPERIMENTS: dict[str, Experiment] = {
    one.name: one
    for one in (
        rq1.EXPERIMENT,
        ablation.EXPERIMENT,
        *suites.EXPERIMENTS,
        rq6.EXPERIMENT,
        cells_reached.EXPERIMENT,
        disagreements.EXPERIMENT,
        stopping.EXPERIMENT,
    )
}
"""Experiments by name."""
