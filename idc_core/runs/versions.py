"""A figure over the successive versions of one network, told apart by the fingerprints of their weights."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from idc_core.runs.comparing import LABELS, differing_settings
from idc_core.runs.run import Run

VERSION = "network_fingerprint"


@dataclass(frozen=True)
class VersionLine:
    """Runs with the same settings on successive versions of a network, the oldest first; what else tells it apart."""

    runs: tuple[Run, ...]
    label: str = ""


def versions(runs: Sequence[Run], aside: Sequence[str] = ()) -> list[VersionLine]:
    """Return a line per choice of settings: of every version of the network the newest run.

    Versions are in the order in which they were first measured.

    Parameters
    ----------
    runs : sequence of Run
        Of one kind and one network.
    aside : sequence of str
        Settings that follow from others.
    """
    lines: dict[str, dict[str, Run]] = {}
    for run in sorted(runs, key=lambda entry: entry.facts.made):
        same = {name: value for name, value in run.facts.settings.items() if name not in (*LABELS, *aside, VERSION)}
        # A later run of the same version takes the place of the earlier one.
        lines.setdefault(json.dumps(same, sort_keys=True), {})[run.said(VERSION)] = run
    groups = [tuple(line.values()) for line in lines.values()]
    differing = differing_settings([line[0] for line in groups], aside) if groups else {}
    differing.pop(VERSION, None)
    labels = [
        ", ".join(f"{name.replace('_', ' ')} {row[place]}" for name, row in differing.items())
        for place in range(len(groups))
    ]
    made = [VersionLine(line, label) for line, label in zip(groups, labels, strict=True)]
    return sorted(made, key=lambda line: (-len(line.runs), line.label))
