"""The experiments of the command line: one module an experiment, one line in `EXPERIMENTS`."""

from idc_core.cli.experiments import ablation, cells, finds, rq1, rq6
from idc_core.cli.experiments.base import Experiment, Record

__all__ = ["EXPERIMENTS", "Experiment", "Record"]

EXPERIMENTS: dict[str, Experiment] = {
    one.EXPERIMENT.name: one.EXPERIMENT for one in (rq1, ablation, rq6, cells, finds)
}
"""Experiments by name."""
