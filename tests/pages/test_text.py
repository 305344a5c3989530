"""Numbers as a person reads them."""

import pytest

from studio.text import lower, parse_cell, percent, rounded


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.99996, "100.0 %"),
        (0.635, "63.5 %"),
        (0.0063, "0.63 %"),
        (0.005, "0.50 %"),
        (7.7e-7, "0.000077 %"),
    ],
)
def test_shares_are_written_without_powers_of_ten(share, written):
    assert percent(share) == written


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.7, "0.70"),
        (0.66, "0.66"),
        (1.4, "1.4"),
        (0.996, "1.0"),
        (12.3, "12"),
        (123.4, "120"),
        (0.026, "0.026"),
        (0, "0"),
    ],
)
def test_numbers_of_a_kind_have_two_digits_that_count(number, written):
    assert rounded(number) == written


def test_names_keep_their_letters_inside_a_sentence():
    assert [lower(label) for label in ("Random noise", "Least confident")] == ["random noise", "least confident"]
    for name in ("DeepGini", "IDC, most new coverage", "LRP-0 (z)", "FGSM"):
        assert lower(name) == name


def test_a_cell_of_more_digits_than_python_reads_is_none():
    assert parse_cell("9" * 5_000, [3]) is None
    assert parse_cell("2-" + "0" * 5_000, [3, 2]) is None
    assert parse_cell("2-1", [3, 2]) == (2, 1)
