"""Workers of a Ray cluster on this machine against one process with as many threads.

A ResNet-18 that was drawn anew; relevance and activations of a late layer. The workers have begun and have opened
network and inputs before: what that takes is a row of its own. Each worker computes with one thread.
"""

import time
from functools import partial
from importlib.util import find_spec

import numpy as np
import torch
from torch import nn

import idc_core
from benchmarks.measure import Row, few, medians
from benchmarks.networks import resnet18, settle
from idc_core.datasets import DATASETS, Items, load_dataset
from idc_core.lrp.rules import RelevanceSettings
from idc_core.models import load_model
from idc_core.tracing.trace import collect
from idc_core.work import EXECUTORS, Source
from idc_core.work.class_errors import count_classes
from idc_core.work.traces import trace_inputs

NOTE = "" if find_spec("ray") else "Ray is not installed: nothing was measured here."

NAME, LAYER, BATCH, INPUTS = "bench-ray", "features.9", 32, 256


def enter() -> None:
    """Enter network and inputs, in whichever process opens them."""
    if NAME in DATASETS:
        return

    @idc_core.dataset(NAME, input_shape=(3, 32, 32), class_names=tuple("0123456789"))
    def read(split: str, limit: int | None, on_progress: object) -> Items:
        inputs = np.random.default_rng(0).random((INPUTS, 3, 32, 32), np.float32)[:limit]
        return Items(inputs, np.zeros(len(inputs), np.int64))

    @idc_core.network(NAME, data=NAME, layer=LAYER)
    def build() -> nn.Module:
        torch.manual_seed(0)
        return settle(resnet18())


def measure(workers: int) -> list[Row]:
    """Measure so many workers, and one process with so many threads."""
    import ray

    enter()
    source = Source(NAME, NAME, "test", few(INPUTS), enter)
    model, data = load_model(NAME), load_dataset(NAME, "test", few(INPUTS))
    threads, begun = torch.get_num_threads(), time.perf_counter()
    ray.init("local", num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        torch.set_num_threads(workers)
        with EXECUTORS["ray"].open("") as engine:
            count_classes(engine, source, (LAYER,), batch_size=BATCH)
            opened = time.perf_counter() - begun
            settings, asked = RelevanceSettings(), {"batch_size": BATCH}
            theirs, ours = medians(
                partial(trace_inputs, engine, source, (LAYER,), settings, **asked),
                partial(collect, model, data, (LAYER,), settings, **asked),
                repeats=5,
            )
    finally:
        torch.set_num_threads(threads)
        ray.shutdown()
    label = f"{workers} worker{'s' if workers > 1 else ''}, ResNet-18, {len(data):,} x 3 x 32 x 32"
    rate = f"{len(data) / theirs:,.0f} inputs per second; one process {len(data) / ours:,.0f}"
    return [
        Row(label, theirs, f"one process, {workers} thread{'s' if workers > 1 else ''}", ours, note=rate),
        Row(f"{label}: start of Ray, and a first pass without relevance", opened),
    ]


PARTS = {f"{count} workers": partial(measure, count) for count in (1, 2) if not NOTE}
