"""Which page opens a run, and with which address: what a page said as it made the run, or what its settings tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from idc_core.base.parameters import is_whole
from idc_core.coverage.idc_settings import CONTROLS, OPTIONS
from idc_core.runs import ErrorSettings, Run
from studio.jobs.runs import ADDRESS
from studio.shell.pages import PAGES
from studio.state.setup import MOST_NEURONS

_CONTROLLED = {control.option: control for control in CONTROLS.values()}
_ELSEWHERE = {"rule", "bias", "epsilon", *(option.name for option in OPTIONS)} - set(_CONTROLLED)
"""Settings of IDC that no page has."""


def page_of(run: Run) -> str:
    """Return the page that opens a run; empty where none can show the same."""
    name = next((page.name for page in PAGES.values() if run.facts.kind in page.opens), "")
    return name if parameters_of(run) else ""


def parameters_of(run: Run) -> dict[str, str]:
    """Return the parts of the address that opens a run, by name; nothing where no page has its settings."""
    settings = run.facts.settings
    if ADDRESS in settings:  # a page made it, or an older version
        return dict(parse_qsl(run.said(ADDRESS)))
    reader = {"analysis": _of_analysis, "class-errors": _of_class_errors}.get(run.facts.kind)
    own = None if reader is None or settings.get("part_of_data") else reader(settings)
    if own is None:
        return {}
    parts = {"model": run.said("network"), "data": run.said("tests"), "layer": run.said("layer"), **own}
    return {name: value for name, value in parts.items() if value}


def _of_analysis(settings: Mapping[str, object]) -> dict[str, str] | None:
    values = {name: tuple(one) if isinstance(one, list) else one for name, one in settings.items()}
    parts = {one.name: one.text(values[name]) for name, one in _CONTROLLED.items() if name in values}
    m = settings.get("m")  # of an imported run it may be anything
    if not is_whole(m, 1, MOST_NEURONS) or not all(parts.values()) or _ELSEWHERE & settings.keys():
        return None
    return {"m": str(m), **parts}


def _of_class_errors(settings: Mapping[str, Any]) -> dict[str, str] | None:
    usual = {**ErrorSettings().told, "kind": None}
    layers = usual.pop("counted_layers")
    if any(settings.get(name) != value for name, value in usual.items()):
        return None
    counted, groups = settings.get("counted_layers", layers), settings.get("groups", "")
    if not (isinstance(counted, list | tuple) and all(isinstance(name, str) for name in (*counted, groups))):
        return None
    return {"counted": ",".join(counted), "groups": groups}
