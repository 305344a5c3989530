"""The documents are true: examples run, paths exist, every module is on the plan."""

import contextlib
import io
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs" / "results").glob("*.md"))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "docs/ARCHITECTURE.md", "docs/RESULTS.md", *RESULTS)


def blocks(document, language):
    fenced = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return fenced.findall((ROOT / document).read_text(encoding="utf-8"))


def planned_paths():
    """Paths of the tree in ARCHITECTURE.md: two spaces of indentation a level, name, then purpose."""
    (tree,) = blocks("docs/ARCHITECTURE.md", "text")
    folders, paths = [], []
    for line in tree.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        paths.append("".join(folders))
    return paths


def test_readme_example_runs():
    (example,) = blocks("README.md", "python")
    assert len([line for line in example.splitlines() if line]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, "README.md", "exec"), {})  # noqa: S102 (the point of the test)
    first, *neurons = printed.getvalue().splitlines()
    covered, total, percent = re.fullmatch(r"(\d+) of (\d+) cells: IDC ([\d.]+) %", first).groups()
    assert 0 < int(covered) <= int(total)
    assert float(percent) == pytest.approx(100 * int(covered) / int(total), abs=0.051)
    assert len(neurons) == 6


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_pictures_exist(document):
    targets = re.findall(r"\]\(([^)#]+)\)", (ROOT / document).read_text(encoding="utf-8"))
    missing = [
        target
        for target in targets
        if not target.startswith("https://") and not ((ROOT / document).parent / target).exists()
    ]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_in_prose_exist(document):
    """A word in backticks with a slash is a path from the root, unless it holds the placeholder NAME."""
    words = re.findall(r"`([\w.\-]+/[\w./\-]*)`", (ROOT / document).read_text(encoding="utf-8"))
    missing = [word for word in words if "NAME" not in word and not (ROOT / word).exists()]
    assert not missing


def test_plan_names_what_exists():
    missing = [path for path in planned_paths() if not (ROOT / path).exists()]
    assert not missing


def test_plan_names_every_module_of_the_engine():
    engine = ROOT / "idc_core"
    modules = {f"idc_core/{file.name}" for file in engine.glob("*.py") if file.name != "__init__.py"}
    packages = {f"idc_core/{file.parent.name}/" for file in engine.glob("*/__init__.py")}
    assert modules | packages <= set(planned_paths())


def test_plan_names_every_page():
    pages = {f"pages/{file.name}" for file in (ROOT / "pages").glob("*.py") if file.name != "__init__.py"}
    assert pages <= set(planned_paths())


def test_results_name_every_page_of_theirs():
    index = (ROOT / "docs" / "RESULTS.md").read_text(encoding="utf-8")
    assert RESULTS
    assert [page for page in RESULTS if f"]({Path(page).relative_to('docs')})" not in index] == []


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())
    explained = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {"run", "test", "test-slow", "test-fast", "lint", "types", "bench", "clean", "help"} <= explained
    assert targets - explained == {"chromium"}  # the one that is a step of others


def test_requirements_are_pinned_and_leave_torchvision_out():
    names = set()
    for file in ("requirements.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                names.add(re.fullmatch(r"([\w\-]+)==[\w.]+", line)[1])
    assert {"torch", "streamlit", "pytest"} <= names
    assert "torchvision" not in names
