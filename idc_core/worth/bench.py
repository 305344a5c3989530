"""The bench for the next criterion: one from a file beside the kept rows of all others, and its card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from idc_core.base.progress import Progress
from idc_core.coverage import CRITERIA
from idc_core.errors import DataError
from idc_core.store.cache import Record
from idc_core.worth import telling
from idc_core.worth.laws import Law, check_laws
from idc_core.worth.networks import PoolSettings, study_network
from idc_core.worth.pooling import Mean, SelectedRow, correlated, selected, yardsticks_of
from idc_core.worth.published import joined


@dataclass(frozen=True)
class Bench:
    """What a criterion is worth beside the others.

    Attributes
    ----------
    name : str
    laws : list of Law
    own : dict
        Its studies by network, as `study_network` gives them.
    rows : dict
        By yardstick what each ranking selects at the largest budget, over the criterion's networks.
    correlations : dict
        By yardstick and design the mean correlation of its score with the share found.
    budget : str
        The largest budget.
    missing : list of str
        Why something was left out.
    """

    name: str
    laws: list[Law]
    own: dict[str, Record]
    rows: dict[str, list[SelectedRow]]
    correlations: dict[str, dict[str, Mean]]
    budget: str
    missing: list[str]

    def card(self) -> Record:
        """Return all that is known of the criterion as plain values."""
        card = CRITERIA[self.name].card
        mine = {name: next(row for row in rows if row.ranking == self.name) for name, rows in self.rows.items()}
        return {
            "criterion": self.name,
            "label": card.label,
            "help": card.help,
            "citation": card.citation,
            "laws": [asdict(law) for law in self.laws],
            "networks": list(self.own),
            "budget": self.budget,
            "selection": {name: asdict(row) for name, row in mine.items()},
            "place": {name: 1 + self.rows[name].index(row) for name, row in mine.items()},
            "of": {name: len(rows) for name, rows in self.rows.items()},
            "correlations": {
                name: {design: asdict(mean) for design, mean in designs.items()}
                for name, designs in self.correlations.items()
            },
            "missing": self.missing,
        }

    def markdown(self) -> str:
        """Return the card for a person to read."""
        card = CRITERIA[self.name].card
        kept = {True: "kept", False: "**not kept**", None: "not for it"}
        lines = [f"# {card.label}", "", f"{card.help} {card.citation}.", "", "| law | |", "|---|---|"]
        lines += [f"| {law.says} | {kept[law.kept]}{law.why and ': '}{law.why} |" for law in self.laws]
        for name, rows in self.rows.items():
            lines += ["", f"## {name[0].upper()}{name[1:]}, {self.budget} of the pool selected", ""]
            lines += telling.selection_table(rows)
            designs = self.correlations[name]
            told = ", ".join(f"{design} {telling.rho(mean)}" for design, mean in designs.items())
            lines += ["", f"Correlation of its score with the share found: {told or 'not defined'}."]
        lines += [""] + [f"Left out: {why}" for why in self.missing]
        return "\n".join(lines).rstrip() + "\n"


def bench(
    name: str,
    networks: Sequence[str],
    kept: Mapping[str, Record],
    pool: PoolSettings | None = None,
    *,
    code: str = "",
    fresh: bool = False,
    on_progress: Progress | None = None,
) -> Bench:
    """Hold a criterion of the registry to the laws, and to the yardsticks of networks, beside their kept records.

    Raises
    ------
    DataError
        If it could be measured on none of the networks.
    """
    own, together, missing = {}, {}, []
    for network in networks:
        record = study_network(network, pool, criteria=[name], code=code, fresh=fresh, on_progress=on_progress)
        missing += [f"{network}: {why}" for why in record["missing"].values()]
        if not any(held["rankings"].keys() > {"size"} for held in record["yardsticks"].values()):
            continue
        own[network] = record
        try:
            together[network] = joined(kept[network], record) if network in kept else record
        except DataError as error:
            missing.append(str(error))
            together[network] = record
    if not own:
        raise DataError(f"{name} could not be measured on any network. {' '.join(missing)}")
    budget = len(next(iter(own.values()))["budgets"]) - 1
    names = yardsticks_of(own)
    rows = {yardstick: selected(together, yardstick, budget) for yardstick in names}
    designs = {yardstick: correlated(own, yardstick) for yardstick in names}
    mine = {
        yardstick: {design: means[name] for design, means in found.items() if name in means}
        for yardstick, found in designs.items()
    }
    return Bench(name, check_laws(name), own, rows, mine, "5 %", missing)
