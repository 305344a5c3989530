"""Records that are kept in the repository, one file a network: what the page, the documents and the bench read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from idc_core.base.files import SHIPPED, write_whole
from idc_core.errors import DataError
from idc_core.store.cache import Record

FOLDER = SHIPPED / "assets" / "worth"


def published(folder: Path = FOLDER) -> dict[str, Record]:
    """Return the kept records by network, in the order of the networks' names; none where none are kept."""
    records = {}
    for file in sorted(folder.glob("*.json")):
        records[file.stem] = json.loads(file.read_text(encoding="utf-8"))
    return records


def publish(records: Mapping[str, Record], folder: Path = FOLDER) -> None:
    """Keep records by network; rankings of criteria that were entered before on the same inputs stay beside them."""
    before = published(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, record in records.items():
        kept = before.get(name)
        whole = joined(kept, record) if kept is not None and is_same_pool(kept, record) else record
        written = json.dumps(whole, indent=1, sort_keys=True) + "\n"
        write_whole(folder / f"{name}.json", written.encode())


def is_same_pool(one: Record, other: Record) -> bool:
    """Whether two records are of the same network, inputs and selections."""
    return all(one[key] == other[key] for key in ("prints", "tests", "budgets"))


def joined(one: Record, other: Record) -> Record:
    """Return a record of one pool with the rankings of another record on it.

    Raises
    ------
    DataError
        If they are not of the same network, inputs and selections: their numbers cannot be compared.
    """
    if not is_same_pool(one, other):
        raise DataError(
            f"The kept record of {one['network']} is of {one['tests']:,} tests with other fingerprints than these "
            f"{other['tests']:,}: use the same network, data and sizes, or leave this network out."
        )
    held = {name: dict(yardstick) for name, yardstick in one["yardsticks"].items()}
    for name, yardstick in other["yardsticks"].items():
        rankings = held.get(name, {}).get("rankings", {})
        held[name] = {**yardstick, "rankings": rankings | yardstick["rankings"]}
    whole = {**one, "yardsticks": held, "ranges": one["ranges"] | other["ranges"]}
    parts = [record["corruptions"] for record in (one, other) if "corruptions" in record]
    if parts:
        whole["corruptions"] = {**parts[0], "gains": parts[0]["gains"] | parts[-1]["gains"]}
    return whole
