"""Numbers as a person reads them."""

import pytest

from studio.text import lower, percent


@pytest.mark.parametrize(
    ("share", "written"),
    [
        (0, "0 %"),
        (1, "100 %"),
        (0.99996, "100.0 %"),
        (0.635, "63.5 %"),
        (0.0063, "0.63 %"),
        (0.005, "0.5 %"),
        (7.7e-7, "0.000077 %"),
    ],
)
def test_shares_are_written_without_powers_of_ten(share, written):
    assert percent(share) == written


def test_names_keep_their_letters_inside_a_sentence():
    assert [lower(label) for label in ("Random noise", "Least confident")] == ["random noise", "least confident"]
    for name in ("DeepGini", "IDC, most new coverage", "LRP-0 (z)", "FGSM"):
        assert lower(name) == name
