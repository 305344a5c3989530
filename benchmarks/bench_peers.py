"""Relevance and attacks against zennit, LXT and ART, in an environment of their own."""

from functools import partial

from benchmarks.measure import Row, few
from benchmarks.peers import PYTHON, ask

NETWORKS = ("LeNet-5", "ConvNet", "ResNet-18", "ResNet-50")
ATTACKS = ("fgsm", "pgd")

NOTE = (
    "zennit and LXT propagate to the input; the engine keeps the relevance of every layer on the way. "
    "FGSM and PGD of ART return the changed inputs; the engine's also the network's answers before and after, and the "
    "size of every change."
    if PYTHON.exists()
    else "Nobody was asked: there is no .venv-peers, which `make peers` makes."
)


def against(peer: str, *arguments: str) -> list[Row]:
    """Have one peer timed beside the engine."""
    found = ask(f"peer_{peer.lower()}", *arguments)
    return [
        Row(one["what"], one["ours"], peer, one["theirs"], times_faster=1.0, note=one.get("note", "")) for one in found
    ]


PARTS = (
    {
        **{f"zennit, {name}": partial(against, "zennit", name, "5") for name in NETWORKS},
        "LXT, BERT-base": partial(against, "LXT", str(few(32, 2)), "5"),
        **{f"ART, {name}": partial(against, "ART", name, str(few(256, 16)), "5") for name in ATTACKS},
    }
    if PYTHON.exists()
    else {}
)
