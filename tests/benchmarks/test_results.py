"""The document of the benchmarks: missed targets first, what failed, ratios that got worse, slopes of growth."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import results
from benchmarks.bench_growth import draw, slope
from benchmarks.measure import QUICK, Row, few, measured, medians

ROOT = Path(__file__).resolve().parents[2]

SECTIONS = {
    "Relevance": [Row("fast", 1.0, "plain", 2.0, at_most=1.1), Row("slow", 3.0, "plain", 2.0, at_most=1.1)],
    "Clusters": [Row("one neuron", 0.5, at_most=0.1), Row("told only", 1.0, "other", 4.0)],
}


def test_missed_targets_come_first_and_what_got_worse_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "LAST", tmp_path / "last.json")
    assert results.last() == {}
    text = results.document("A machine.", SECTIONS, {"Clusters": "A note."})
    first = text[: text.index("## Relevance")]
    assert "2 of 3 targets are missed." in first
    assert "| slow |" in first
    assert "| one neuron |" in first
    assert "| fast |" not in first
    assert text.endswith("A note.\n")
    results.keep(SECTIONS)
    assert results.worse(results.ratios(SECTIONS), results.last()) == []
    assert json.loads((tmp_path / "last.json").read_text())["Relevance: fast / plain"] == 0.5
    slower = {**SECTIONS, "Relevance": [Row("fast", 1.3, "plain", 2.0), Row("slow", 3.5, "plain", 2.0)]}
    (sentence,) = results.worse(results.ratios(slower), results.last())
    assert sentence == "Relevance: fast / plain: 0.65, before 0.5 (30 % worse)"
    assert sentence in results.document("A machine.", slower, {})


def test_what_fails_has_a_row_that_says_why_and_no_ratio(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "LAST", tmp_path / "last.json")

    def fails():
        raise ValueError("two\nlines | here")

    sections = {"Relevance": [*SECTIONS["Relevance"], *measured("a network", fails)]}
    text = results.document("A machine.", sections, {})
    assert "1 of 2 targets are missed. 1 part could not be measured." in text
    assert text.count("| a network: ValueError: two lines / here |  |  |  |  |  | failed |") == 2, "first, and in place"
    assert len(results.ratios(sections)) == 2
    assert measured("these", lambda: SECTIONS["Clusters"]) == SECTIONS["Clusters"]


def test_a_row_over_its_limit_of_memory_is_missed_and_says_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "LAST", tmp_path / "last.json")
    within, over = (Row(f"{size} MiB", 1.0, memory=size * 2**20, memory_at_most=110 * 2**20) for size in (110, 111))
    assert (within.met, over.met) == (True, False)
    text = results.document("A machine.", {"Memory": [within, over]}, {})
    assert "111 MiB, at most 110" in text[: text.index("## Memory")]
    assert "| 110 MiB |" not in text[: text.index("## Memory")]


def test_little_is_done_once_where_everything_is_only_tried(monkeypatch):
    done = []
    assert few(10_000) == 10_000
    monkeypatch.setenv(QUICK, "1")
    assert [few(10_000), few(1_000), few(20), few(10_000, 500)] == [100, 64, 20, 500]
    medians(lambda: done.append(1), repeats=7)
    assert len(done) == 2, "to warm up, and once"


@pytest.mark.rare
def test_every_benchmark_works(data_folder):
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "benchmarks").iterdir()}
    tried = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    after = {path: path.stat().st_mtime_ns for path in (ROOT / "benchmarks").iterdir()}
    assert {path for path in after if after[path] != before.get(path)} <= {ROOT / "benchmarks" / "__pycache__"}


def test_slopes_are_those_of_the_growth(tmp_path):
    sizes = (10, 100, 1000)
    assert slope(sizes, [size**2 / 7 for size in sizes]) == pytest.approx(2)
    draw([("squares", sizes, [1, 2, 3])], tmp_path / "growth.svg")
    assert (tmp_path / "growth.svg").read_text().count("<svg") == 1
