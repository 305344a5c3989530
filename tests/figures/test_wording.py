"""Words on figures and pages: minus signs, and titles whose lines are about as long."""

import pytest

from idc_core.figures.palette import palette
from idc_core.figures.style import finish, panels
from idc_core.figures.wording import balanced, signed, typeset


def test_negative_numbers_get_a_minus_and_names_keep_their_hyphens():
    assert typeset("from -0.5 to (-.3), -7") == "from \u22120.5 to (\u2212.3), \u22127"
    for name in ("LeNet-5", "cell 2-1-0", "1e-06", "non-zero", "U_O-2"):
        assert typeset(name) == name


@pytest.mark.parametrize(
    ("value", "how", "written"),
    [
        (1.256, "+.2f", "+1.26"),
        (-0.3, "+.1f", "\u22120.3"),
        (-0.004, "+.2f", "0.00"),
        (0, "+.1f", "0.0"),
        (-0.25, ".2f", "\u22120.25"),
        (-1234.5, "+,.1f", "\u22121,234.5"),
    ],
)
def test_signs_are_written_except_of_zero(value, how, written):
    assert signed(value, how) == written


def test_no_line_of_a_title_is_left_with_a_word():
    title = "50 of 50 seeds have a find within 50 steps; half of the finds took at most 14 steps"
    assert balanced(title, 78) == title.replace("; ", ";\n").split("\n")
    assert balanced("Short", 78) == ["Short"]
    assert " ".join(balanced(title, 20)) == title


def test_a_number_stays_with_its_unit_and_a_setting_in_one_line():
    for width in range(8, 60):
        lines = balanced("At m = 6 random noise adds 4.5 % of all cells; at m = 12 no more", width)
        assert not any(line.startswith(("=", "%")) or line.endswith("=") for line in lines)


def test_a_figures_title_is_balanced_and_typeset():
    figure, _ = panels(["one"])
    title = "Silencing the first neurons changes accuracy by -10.6 points, and random ones by -0.8"
    finish(figure, title, palette(False), height=300)
    first, second = figure.layout.title.text.split("<br>")
    assert abs(len(first) - len(second)) < 12
    assert "\u221210.6" in first + second
    assert "-" not in first + second
