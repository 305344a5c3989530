"""Networks of equal weights that compute something else, on pages and by commands: none shows the other's number."""

import re
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import streamlit as st
from torch import nn

import idc_core as idc
from idc_core.cli import main
from studio.jobs.jobs import shelf
from tests.opening.equal_weights import PAIRS, SIDE
from tests.pages.reading import charts, open_page, text

SOME = ("activation", "temperature", "tensor", "configuration in depth", "hook", "padding")
ROWS = np.random.default_rng(0).random((120, SIDE), np.float32)
PICTURES = np.repeat(ROWS[:, None, None], 4, 2)
COMMANDS = {
    "report": "--model alike --m 3 --out a.html --json a.json",
    "analyze": "--model alike --m 3",
    "confusion": "--model alike --json a.json",
    "check": "idc.toml",
    "check-network": "--model alike",
    "fill-grid": "--model alike --m 3 --changed 20 --starts 2 --iterations 3 --kept 1 --csv a.csv",
    "differential": "--models alike alike-beside --seeds 6 --iterations 3 --csv a.csv",
}
CHECK = "baseline = 'baseline.json'\n[[check]]\nmodel = 'alike'\nm = 3\n[[check.limit]]\nat_least = 0.001\n"
TIMED = re.compile(r"\n\nSTEP .*|\([\d.]+ s\)", re.DOTALL)
"""What a command prints of its seconds."""

PLACES = (
    ("layers", ""), ("clusters", "number"), ("clusters", "cells"), ("coverage", ""), ("classes", "pairs"),
    ("classes", "bias"), ("neurons", ""), ("criteria", ""), ("relevance", ""), ("testsets", ""), ("adversarial", ""),
)  # fmt: skip


class Spread(nn.Module):
    """Lets the networks of the pairs predict several classes for pixels."""

    def forward(self, x):
        return 8 * (x - 0.5)


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """A folder for what commands write."""
    monkeypatch.chdir(tmp_path)
    Path("idc.toml").write_text(CHECK)
    yield
    forget()


def forget():
    """Let all that this process holds be read where it is kept."""
    shelf.clear()
    st.cache_data.clear()


def enter(make, inputs):
    """Enter a network and its data, as a setup file that is read again does."""
    first = (nn.AvgPool2d((4, 1)), nn.Flatten(), Spread()) if inputs.ndim == 4 else ()
    idc.dataset("alike-data")(lambda split: (inputs, np.arange(len(inputs)) % 3))
    idc.network("alike", data="alike-data")(lambda: nn.Sequential(*first, make()) if first else make())
    idc.network("alike-beside", data="alike-data")(lambda: nn.Sequential(nn.Flatten(), nn.Linear(inputs[0].size, 3)))


def page(name, tab=""):
    """Return what a page says and draws."""
    app = open_page(name, model="alike", **({"tab": tab} if tab else {}))
    assert not app.exception
    return text(app), charts(app), [one.value.to_csv() for one in app.dataframe]


def commanded(name, capsys):
    """Return what a command prints and writes."""
    for path in Path().glob("a.*"):
        path.unlink()
    status = main([name, *COMMANDS[name].split()])
    said = capsys.readouterr()
    assert status == 0, said
    return TIMED.sub("", said.out), [path.read_bytes() for path in sorted(Path().glob("a.*"))]


def compared(pair, shows, home, monkeypatch, inputs=PICTURES):
    """Compare what is shown of each of a pair by itself with what is shown where results of both are kept.

    Return which of what is shown tells them apart.
    """

    def shown(number):
        enter(PAIRS[pair][number], inputs)
        return {name: show() for name, show in shows.items()}

    def begin(name):
        monkeypatch.setenv("IDC_HOME", str(home / name))
        forget()

    begin("second alone")
    second = shown(1)
    begin("both")
    first = shown(0)
    assert shown(1) == second
    assert shown(0) == first
    forget()  # and read what is kept on disk
    assert shown(1) == second
    return [name for name in shows if first[name] != second[name]]


@pytest.mark.rare
@pytest.mark.parametrize("pair", PAIRS)
def test_overview_and_report(pair, tmp_path, monkeypatch, capsys):
    shows = {"overview": lambda: page("overview"), "report": lambda: commanded("report", capsys)}
    compared(pair, shows, tmp_path, monkeypatch, ROWS)


@pytest.mark.rare
@pytest.mark.parametrize("pair", SOME)
def test_commands(pair, tmp_path, monkeypatch, capsys):
    shows = {name: partial(commanded, name, capsys) for name in COMMANDS}
    assert compared(pair, shows, tmp_path, monkeypatch)


@pytest.mark.rare
@pytest.mark.parametrize("pair", SOME)
def test_pages(pair, tmp_path, monkeypatch):
    assert compared(pair, {place: partial(page, *place) for place in PLACES}, tmp_path, monkeypatch)
