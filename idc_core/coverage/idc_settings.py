"""How IDC is measured, as one object, from whose fields all that asks for options or tells them derives.

That is command line, files of checks, addresses, controls, keys of results and lists of runs. A new option is a field
of `IdcOptions`, and its use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from idc_core.base.parameters import Parameter, option, options_among, truth
from idc_core.base.ranges import CLUSTERS
from idc_core.errors import SettingError

if TYPE_CHECKING:
    from idc_core.lrp.rules import NamedRule, RelevanceSettings


class _Choice(NamedTuple):
    """A value that is offered, with what a person reads of it."""

    value: Any
    label: str
    help: str = ""


@dataclass(frozen=True, kw_only=True)
class Control(Parameter):
    """How the dashboard asks for an option: a part of its setup, and of the address, by the names of its choices.

    `part` is what it is in a sentence, `line` how a choice is told in the line of a setup, `refusal` what is said of
    another name. `option` is the option's own name.
    """

    part: str
    line: str
    refusal: str
    choices: Callable[[], Mapping[str, _Choice]]
    option: str = ""

    def text(self, value: object) -> str:
        """Return the name of a value; empty where it is not offered."""
        return next((name for name, choice in self.choices().items() if choice.value == value), "")


def _clusterings() -> Mapping[str, _Choice]:
    from idc_core.clustering.methods import CLUSTERINGS

    return {name: _Choice(name, method.label, method.help) for name, method in CLUSTERINGS.items()}


@dataclass(frozen=True, kw_only=True)
class IdcOptions:
    """What IDC does with relevance and activations.

    Attributes
    ----------
    priority : str
        What makes a neuron important, a name from `PRIORITIES`.
    clusters : tuple of int
        Numbers of clusters to choose from, by silhouette, ascending; or the number of clusters.
    drop_zeros : bool
        Leave activations of exactly zero out of the clustering.
    clustering : str
        Way to cluster, a name from `CLUSTERINGS`; "k-means" is the paper's.
    original : bool
        Follow the original program: only correctly classified training inputs take part, activations of zero are
        dropped in dense layers, and centroids are rounded to two decimals.

    Raises
    ------
    SettingError
        If a value is outside what the method defines.
    """

    priority: str = option("sum", "what makes a neuron important, for example absolute", "priorities")
    clusters: tuple[int, ...] = option(
        (2, 3, 4),
        "numbers of clusters to choose from",
        CLUSTERS,
        control=Control(
            "k",
            "Number of clusters k",
            "Clusters per neuron, on all pages. Automatic takes 2, 3 or 4 by the best silhouette; 2 to 8 sets the same "
            "number for all neurons.",
            "auto",
            part="number of clusters",
            line="k = {}",
            refusal="The number of clusters cannot be {}",
            choices=lambda: {
                "auto": _Choice((2, 3, 4), "automatic"),
                **{str(k): _Choice((k,), str(k)) for k in range(2, 9)},
            },
        ),
    )
    drop_zeros: bool = option(
        False,
        "leave activations of exactly zero out of the clustering",
        control=Control(
            "zeros",
            "Activations of zero",
            "Keep or drop activations of exactly zero before clustering, on all pages; many neurons are zero for most "
            "inputs.",
            "kept",
            part="choice of zeros",
            line="zeros {}",
            refusal="Zeros are kept or dropped, not {}",
            choices=lambda: {"kept": _Choice(False, "kept"), "dropped": _Choice(True, "dropped")},
        ),
    )
    clustering: str = option(
        "k-means",
        "way to cluster, for example dbscan",
        "clusterings",
        control=Control(
            "clustering",
            "Clustering method",
            "Method that splits the activations, on all pages.",
            "k-means",
            part="clustering",
            line="{}",
            refusal="There is no clustering named {}",
            choices=_clusterings,
        ),
    )
    original: bool = option(
        False, "follow the original program: zeros dropped, correct training inputs only, centroids rounded"
    )

    def __post_init__(self) -> None:
        """Bring values to their kinds, and refuse others."""
        from idc_core.clustering.kmeans import check_clusters
        from idc_core.clustering.methods import CLUSTERINGS
        from idc_core.importance.important_neurons import PRIORITIES

        object.__setattr__(self, "clusters", tuple(check_clusters(self.clusters)))
        for entry in OPTIONS:
            if isinstance(entry.default, bool):
                object.__setattr__(self, entry.name, truth(entry.name, getattr(self, entry.name)))
        CLUSTERINGS[self.clustering].check(self.clusters)
        _ = PRIORITIES[self.priority]

    @property
    def options(self) -> dict[str, Any]:
        """The options alone, by name."""
        return {entry.name: getattr(self, entry.name) for entry in OPTIONS}

    def refuse_original(self, what: str) -> None:
        """Refuse `original` where what it asks for is not done; `what` begins a sentence.

        Raises
        ------
        SettingError
            If it is set.
        """
        if self.original:
            raise SettingError(f"{what} follows the method, not the original program: leave original out.")


OPTIONS = options_among(IdcOptions)
"""The options in the order in which they are told."""

CONTROLS: dict[str, Control] = {
    control.name: replace(control, option=field.name)
    for field in fields(IdcOptions)
    if (control := field.metadata.get("control"))
}
"""The controls of those that the dashboard asks for, by their names in the address."""


@dataclass(frozen=True, kw_only=True)
class IdcSettings(IdcOptions):
    """How IDC is measured: how relevance is propagated, and the options."""

    relevance: RelevanceSettings

    @classmethod
    def of(cls, rule: NamedRule | IdcSettings = "epsilon", **parameters: object) -> IdcSettings:
        """Return the settings of a relevance rule with options and parameters of the rule, or those given instead.

        Raises
        ------
        SettingError
            If nothing has such a parameter, or a value is outside what the method defines.
        """
        from idc_core.lrp.rules import RelevanceSettings

        own: dict[str, Any] = {entry.name: parameters.pop(entry.name) for entry in OPTIONS if entry.name in parameters}
        if not isinstance(rule, IdcSettings):
            return cls(relevance=RelevanceSettings.of(rule, **parameters), **own)
        if given := [*own, *(name for name, value in parameters.items() if value is not None)]:
            raise SettingError(f"{given[0]} belongs into the IdcSettings that are given as the rule.")
        return rule

    def as_dict(self) -> dict[str, Any]:
        """Return rule, its parameters, bias and options by name."""
        return {**self.relevance.as_dict(), **self.options}

    @property
    def unusual(self) -> dict[str, Any]:
        """What differs from the usual settings, by name."""
        usual = IdcSettings.of().as_dict()
        return {name: value for name, value in self.as_dict().items() if value != usual.get(name)}
