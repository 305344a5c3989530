"""One word per thing, and one way of writing a number, in all that the dashboard says (docs/DESIGN.md)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SAYING = [
    ROOT / "app.py",
    *(file for folder in ("pages", "studio", "idc_core/figures") for file in (ROOT / folder).rglob("*.py")),
]
AVOIDED = {
    r"(?<![\d.,#])\d{5,}(?![\d.]|px)": "thousands have commas",
    r"\bbits a \w": "per, not a distributive a",
    r"\b(histogram|bar|box|point|row|line|mark) an? (neuron|layer|seed|test|class)\b": "per, not a distributive a",
    r"\bless what\b": "minus",
}
"""What is not written, and what is written instead."""
SQL = ROOT / "studio" / "hypotheses" / "sql_questions.py"
OF_NEURONS = [
    ROOT / "pages" / "hypotheses.py",
    ROOT / "idc_core" / "inspection" / "result.py",
    *(ROOT / "studio" / "hypotheses").glob("*.py"),
]


def said(file: Path) -> Iterator[str]:
    """Texts of a file that a person may read: of several words, and no documentation."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and id(node) not in documentation else None
        if isinstance(text, str) and " " in text.strip():
            yield text


@pytest.mark.parametrize("file", SAYING, ids=lambda file: str(file.relative_to(ROOT)))
def test_texts_use_the_words_of_the_design(file):
    found = [(text, instead) for text in said(file) for avoided, instead in AVOIDED.items() if re.search(avoided, text)]
    assert found == []


def test_percentages_of_a_table_have_one_number_of_digits():
    """Three digits that count are 49 and 47.9, or 8.3 and 8.33: decimals are the same in every row."""
    texts = [file.read_text(encoding="utf-8") for file in SAYING]
    formats = [found for text in texts for found in re.findall(r'\(%\)"[^%]*NumberColumn\(\s*format="([^"]*)"', text)]
    assert len(formats) > 5
    assert [how for how in formats if not how.endswith("f")] == []


def test_units_and_records_are_words_of_the_questions_in_sql_alone():
    texts = [text for file in OF_NEURONS if file != SQL for text in said(file)]
    assert texts
    assert [text for text in texts if re.search(r"\b([Uu]nits?|[Rr]ecords?)\b", text)] == []


def test_what_is_avoided_would_be_found(tmp_path):
    file = tmp_path / "page.py"
    for text in ("4 bits a weight", "50000 tests", "the score, less what biases keep", "one histogram a neuron"):
        file.write_text(f"print({text!r})", encoding="utf-8")
        assert any(re.search(avoided, one) for one in said(file) for avoided in AVOIDED), text
