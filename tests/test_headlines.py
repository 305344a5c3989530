"""Titles, headings and first sentences carry what their numbers are compared with: on every page, in its source.

`Headline` is the one type that `chart`, `plot` and `grid_chart` take as a title; that they do, the type checker sees.
Here is looked at how headlines are made: of a finding, of a part of a whole, of an estimate, or as a name without a
number. `tests/pages/test_pages.py` looks at the titles that are drawn. No sentence calls what happens to come first the
strongest or the least: there is always one.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from idc_core.errors import SettingError
from idc_core.evidence.finding import Control, Finding
from studio.widgets import headlines
from studio.widgets.headlines import Headline

ROOT = Path(__file__).resolve().parents[1]
MAKERS = {"claim", "counted", "estimated", "topic"}
WRITTEN = {"amount", "count", "percent", "plural", "signed"}
"""Functions that write a measured number."""


EXPLAIN = {"help", "read"}
"""Arguments that explain a control, or how a chart is read."""

MOST = "strongest|weakest|highest|lowest|largest|smallest|least|fewest|most|best|worst"
EXTREME = re.compile(
    rf"(?<!with )\b[Tt]he ({MOST})( \w+){{0,3}}(:| is| are)( \w+)? X\b|\bX (is|are|has|have) the ({MOST})\b"
)
"""A sentence that says of something, X, that it is the most."""


def views() -> Iterator[tuple[str, ast.Module]]:
    """Every file of the dashboard but the one that makes headlines."""
    for file in sorted([ROOT / "app.py", *(ROOT / "pages").glob("*.py"), *(ROOT / "studio").rglob("*.py")]):
        if file != Path(headlines.__file__):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text(encoding="utf-8"))


def called(node: ast.AST) -> str:
    """Return the last part of the name of what is called; empty for what is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def has_measured(node: ast.AST) -> bool:
    """Whether a number is written within an expression, as a person reads it."""
    return any(
        called(part) in WRITTEN or (isinstance(part, ast.FormattedValue) and part.format_spec is not None)
        for part in ast.walk(node)
    )


def digit(text: str) -> bool:
    """Whether there is a digit in a text."""
    return re.search(r"\d", text) is not None


def is_name(text: ast.expr) -> bool:
    """Whether an expression is a text of the source without a digit."""
    return isinstance(text, ast.Constant) and isinstance(text.value, str) and not digit(text.value)


def wrong(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file that write a headline without its control."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    keywords = (node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in EXPLAIN)
    explained = {id(part) for node in keywords for part in ast.walk(node.value)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (said := wrong_call(node)):
            yield node.lineno, said
        if isinstance(node, ast.JoinedStr) and is_bold(node):
            yield node.lineno, "writes in bold what is not a headline"
        if isinstance(node, ast.JoinedStr) and id(node) not in explained and is_extreme(node):
            yield node.lineno, "says that something is the most, which always something is"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield from (
                (node.lineno, "writes a number in bold") for bold in node.value.split("**")[1::2] if digit(bold)
            )


def wrong_call(node: ast.Call) -> str:
    """Say what is wrong with a call that makes or takes a headline; empty where nothing is."""
    name, given = called(node), node.args
    if name == "Headline":
        return "makes a headline by itself"
    if name == "topic" and not (is_name(given[0]) and not any(map(has_measured, given[1:]))):
        return "names something by a number"
    if name == "label" and any(map(has_measured, given)):
        return "names something by a number"
    if name in ("header", "subheader") and not is_name(given[0]) and called(given[0]) not in MAKERS:
        return "heads a part with a text of its own"
    return ""


def is_bold(text: ast.JoinedStr) -> bool:
    """Whether anything that is put into a text stands within a pair of double asterisks."""
    inside = False
    for part in text.values:
        if isinstance(part, ast.Constant):
            inside ^= str(part.value).count("**") % 2 == 1
        elif inside:
            return True
    return False


def is_extreme(text: ast.JoinedStr) -> bool:
    """Whether a text that names things or numbers says of one that it is the most."""
    written = "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in text.values)
    return EXTREME.search(written) is not None


def test_every_headline_is_made_from_a_finding_a_part_an_estimate_or_is_a_name():
    assert [f"{file}:{line} {what}" for file, tree in views() for line, what in wrong(tree)] == []


def test_the_views_make_headlines():
    made = [called(node) for _, tree in views() for node in ast.walk(tree) if called(node) in MAKERS]
    assert set(made) == MAKERS
    assert len(made) > 60


@pytest.mark.parametrize(
    "source",
    [
        'Headline("Covered: 5")',
        'layout.topic(f"{share} of them are reached")',
        'layout.topic("The 5 closest classes")',
        'layout.topic("Agreement: {}", percent(share))',
        'layout.topic("Agreement: {}", f"{rho:.2f}")',
        'layout.label(f"Mean {value:.2f}")',
        'st.subheader(f"{plural(n, noun)} of {name}")',
        "st.header(title)",
        'st.markdown(f"**{sentence}** and more")',
        'st.markdown(f"**The {m} neurons carry {share}.**")',
        'st.markdown("**Half of the 540 tests**")',
        'st.markdown(f"The strongest score: unit {unit}.")',
        'st.markdown(f"{first} and {second} have the largest bias.")',
        'said = f"The most suspected are {name}."',
    ],
)
def test_a_headline_without_its_control_is_seen(source):
    assert list(wrong(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    [
        'layout.topic("Neurons by {}", lower(first.label))',
        'st.header("Findings", anchor=False)',
        'st.header(layout.counted("Left", 3, 5, "cell"), anchor=False)',
        'st.markdown(f"{label(name)}: {count(number)}")',
        'st.markdown(f"**Try:** drag the line of {name}.")',
        'st.markdown(f"Ranked by distance, {name} come first; at most {m} are shown.")',
        'st.slider("m", help=f"Default {m}: the largest is {high}.")',
    ],
)
def test_names_and_findings_pass(source):
    assert not list(wrong(ast.parse(source)))


def test_a_headline_says_its_control():
    finding = Finding("pair", "Confused", 5, Control("by chance", 0.42, 0, 2), 3.0, 5.0, 0.4)
    assert headlines.claim(finding) == "Confused: 5, and 0.42 (0 to 2) by chance, as expected"
    assert headlines.counted("Misclassified", 13, 540, "test") == "Misclassified: 13 of 540 tests (2.4 %)"
    assert headlines.counted("Covered", 0, 1, "cell") == "Covered: 0 of 1 cell"
    assert headlines.estimated("Chance", "5 %", "2 %", "8 %") == "Chance: 5 % (2 % to 8 %, 95 % interval)"
    assert headlines.topic("Class {} as {}", "a_b", 7) == "Class a_b as 7"
    made = (headlines.claim(finding), headlines.counted("a", 1, 2, "b"), headlines.topic("c"))
    assert all(isinstance(one, Headline) for one in made)
    assert headlines.lead(headlines.topic("Class {}", "a_b"), "", "More.") == "**Class a\\_b.** More."
    with pytest.raises(SettingError, match="A finding needs"):
        Finding("pair", "Confused", 5, Control("", 0, 0, 0), 3.0, 5.0, 0.4)
