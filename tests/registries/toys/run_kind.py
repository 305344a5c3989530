"""A toy kind of run: how much an attack had to change at the most."""

from idc_core.runs import RunKind, Score, register_run_kind

register_run_kind(
    RunKind(
        "toy-changes",
        "Largest change",
        (Score("largest", "largest change", "number"), Score("attacked", "attacked tests")),
        lambda found, settings: {"largest": found.linf.max(initial=0.0), "attacked": len(found.positions)},
        "idc_core.runs.attack_run:AttackRun",
    )
)
