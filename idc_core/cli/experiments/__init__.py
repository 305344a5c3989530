"""The experiments of the command line: a module for experiments that are read together; `EXPERIMENTS` lists all."""

from idc_core.cli.experiments import (
    class_errors,
    deepxplore,
    faithfulness,
    filling,
    neurons,
    retraining,
    stopping,
    suites,
    unit_changes,
    worth,
)
from idc_core.cli.experiments.base import Experiment, Record

__all__ = ["EXPERIMENTS", "Experiment", "Record"]

_LISTS = (
    neurons.EXPERIMENTS,
    suites.EXPERIMENTS,
    retraining.EXPERIMENTS,
    stopping.EXPERIMENTS,
    faithfulness.EXPERIMENTS,
    filling.EXPERIMENTS,
    worth.EXPERIMENTS,
    deepxplore.EXPERIMENTS,
    class_errors.EXPERIMENTS,
    unit_changes.EXPERIMENTS,
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for listed in _LISTS for experiment in listed}
"""Experiments by name."""
