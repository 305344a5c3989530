"""Errors and names from outside are shown as they are, not as the Markdown they may hold."""

import ast
import re
from pathlib import Path

import pytest

from studio.text import literal

ROOT = Path(__file__).resolve().parents[2]
SHOWING = {"error", "warning", "info", "success", "caption", "markdown", "write", "toast", "header", "subheader"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](http://x.org/a.png)", r"!\[x\](http://x.org/a.png)"),
        ("<img src=x>", r"\<img src=x\>"),
        ("[a](b)", r"\[a\](b)"),
        (":red[x] :smile: :+1: :material/home:", r"\:red\[x\] \:smile: \:+1: \:material/home:"),
        ("$x$", r"\$x\$"),
        ("**a** _b_ ~~c~~ `d` \\*", r"\*\*a\*\* \_b\_ \~\~c\~\~ \`d\` \\\*"),
        ("&lt; | a |", r"\&lt; \| a \|"),
        (
            "a\n\n    code\n# b\n- c\n12. d\n===\n:-\n> e",
            "a  \ncode  \n\\# b  \n\\- c  \n12\\. d  \n\\===  \n\\:-  \n\\> e",
        ),
        ("Plain: 3 of 4 (a-b), 0.5 x 2 + 1 = 2.", "Plain: 3 of 4 (a-b), 0.5 x 2 + 1 = 2."),
    ],
)
def test_markup_is_shown_as_it_is(text, shown):
    assert literal(text) == shown
    assert literal(ValueError(text)) == shown


def names_of_errors(tree: ast.AST):
    """Every part of a module in which an error has a name, with that name."""
    return [(node, node.name) for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler) and node.name]


def bare(node: ast.AST, name: str) -> bool:
    """Return whether an expression holds the error outside of `literal`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "literal":
        return False
    if isinstance(node, ast.Name) and node.id == name:
        return True
    return any(bare(child, name) for child in ast.iter_child_nodes(node))


def unescaped(source: str) -> list[int]:
    """Lines on which an error is shown, kept for a later run, or returned as a text, without `literal`."""
    found = []
    for handler, name in names_of_errors(ast.parse(source)):
        for node in ast.walk(handler):
            shows = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SHOWING
            writes = isinstance(node, ast.JoinedStr) or (
                isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str"
            )
            raised = any(isinstance(one, ast.Raise) and node in ast.walk(one) for one in ast.walk(handler))
            if (shows or writes) and not raised and bare(node, name):
                found.append(node.lineno)
    return found


def test_every_error_that_pages_show_is_literal():
    assert unescaped("try: pass\nexcept OSError as e: st.error(str(e))") == [2, 2]
    assert unescaped("try: pass\nexcept OSError as e: problem = f'{e}'") == [2]
    files = [file for folder in ("studio", "pages") for file in sorted((ROOT / folder).rglob("*.py"))]
    wrong = {file.name: lines for file in files if (lines := unescaped(file.read_text(encoding="utf-8")))}
    assert not wrong, "lines that show an error as Markdown: write literal(error) of studio/text.py"
    assert sum(len(re.findall(r"literal\(error\)", file.read_text(encoding="utf-8"))) for file in files) > 20
