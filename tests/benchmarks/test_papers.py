"""The account of the papers' figures: no file and no row is missing, and the page is what the registry says."""

import csv

from benchmarks.papers.__main__ import DOCUMENT, document, figure, verdict
from benchmarks.papers.accounts import ACCOUNTS, SAME, VERDICTS, WAITS, Account


def test_every_file_of_published_figures_is_accounted_for(reference_folder):
    folder = reference_folder / "papers"
    files = {file.name for file in folder.iterdir()}
    assert len(files) == 28
    assert {one.file for one in ACCOUNTS} == files


def test_every_row_has_an_account_and_every_account_a_row_of_its_own(reference_folder):
    used = set()
    for file in sorted((reference_folder / "papers").glob("*.csv")):
        own = [one for one in ACCOUNTS if one.file == file.name]
        with file.open(encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                holding = [one for one in own if one.holds(row)]
                assert holding, (file.name, row)
                used.add(id(holding[0]))
    assert [one for one in ACCOUNTS if id(one) not in used and one.file != "README.md"] == []


def test_accounts_have_a_known_verdict_and_say_why():
    assert {one.verdict for one in ACCOUNTS} == set(VERDICTS) - {WAITS}
    by_command = {"rq1-paper", "rq2-paper", "rq3-paper", "rq5-paper", "deepxplore", "near", "pollution", "class-errors"}
    assert {one.kept for one in ACCOUNTS} == {"", *by_command}
    assert [one for one in ACCOUNTS if not one.says.endswith(".")] == []
    assert [one for one in ACCOUNTS if one.page and not (DOCUMENT.parent / one.page).exists()] == []


def test_the_page_is_what_the_registry_and_the_kept_results_say():
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_figures_are_written_for_reading():
    assert [figure(text) for text in ("", "0.1234", "12.345", "123.4", "1234.5")] == [
        "",
        "0.123",
        "12.3",
        "123",
        "1,234",
    ]


def test_what_was_not_run_does_not_count_as_measured():
    assert verdict(Account("a.csv", "rows", SAME, "Why.", kept="no-such-experiment")) == WAITS
    assert verdict(Account("a.csv", "rows", SAME, "Why.")) == SAME
