"""What a person calls the clusters of neurons: kept with their notes, and shown wherever a cluster is named."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from idc_core.errors import IdcError
from idc_core.store import notes
from studio.jobs.results import View
from studio.state import visitor
from studio.state.setup import Setup
from studio.text import cluster_name, literal


def cluster_names(setup: Setup, important: Sequence[int], sizes: Sequence[int]) -> tuple[tuple[str, ...], ...]:
    """Return the names of the clusters of each important neuron; empty for those without one."""
    found = [notes.names_of("cluster", _place(setup, neuron), visitor.person()) for neuron in important]
    return tuple(
        tuple(names.get(str(cluster), "") for cluster in range(size)) for names, size in zip(found, sizes, strict=True)
    )


def names_in(view: View) -> tuple[tuple[str, ...], ...]:
    """Return the names of the clusters of a view's important neurons."""
    return cluster_names(view.setup, view.analysis.important.tolist(), view.sizes)


def called(view: View, rank: int, cluster: int) -> str:
    """Name a cluster of an important neuron: as the person calls it, else by its place among the others."""
    return names_in(view)[rank][cluster] or cluster_name(cluster, view.sizes[rank]).removesuffix(" cluster")


def draw_name(view: View, rank: int, cluster: int, *, whole: bool = False) -> None:
    """Let a person name a cluster; `whole` says whether the field's label names it."""
    if visitor.uploads_refused():
        return
    neuron, setup = int(view.analysis.important[rank]), view.setup
    key = f"cluster-name-{neuron}-{cluster}"
    st.session_state[key] = names_in(view)[rank][cluster]
    about = f"cluster {cluster} of neuron {neuron}"

    def keep() -> None:
        place = {**_place(setup, neuron), "cluster": str(cluster)}
        try:
            notes.write_name(st.session_state[key], about, setup.line, place, visitor.owner(), visitor.person())
        except IdcError as error:
            st.toast(literal(error))

    st.text_input(
        f"Your name for {about}",
        key=key,
        max_chars=notes.LONGEST_NAME,
        placeholder="Your name for it",
        on_change=keep,
        width="stretch" if whole else 200,
        label_visibility="visible" if whole else "collapsed",
        help="Kept with your notes and shown on the grid in place of the cluster's number. Default empty.",
    )


def _place(setup: Setup, neuron: int) -> dict[str, str]:
    """Return what a cluster's name is kept for, besides the cluster: not the tests, nor the number of neurons."""
    return {"model": setup.model, "layer": setup.layer, "neuron": str(neuron), **setup.unusual}
