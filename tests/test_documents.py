"""The documents are true: examples run, paths and names exist, commands are understood, every module is on the plan."""

import contextlib
import importlib
import io
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from idc_core.cli import make_parser

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs" / "results").glob("*.md"))
DOCUMENTS = (
    "README.md",
    "CONTRIBUTING.md",
    "docs/ARCHITECTURE.md",
    "docs/CHECKS.md",
    "docs/CLUSTER.md",
    "docs/OWN-NETWORK.md",
    "docs/RESULTS.md",
    "docs/RULES.md",
    *RESULTS,
    "benchmarks/RESULTS.md",
)
CODE = (
    "app.py",
    "Makefile",
    "pyproject.toml",
    "requirements*.txt",
    *(f"{folder}/**/*.py" for folder in ("idc_core", "studio", "pages", "benchmarks")),
    "tests/**/*.py",
)


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


@cache
def code_names():
    """Every word of the code, and the names of its files with and without their endings."""
    files = [file for pattern in CODE for file in ROOT.glob(pattern) if "node_modules" not in file.parts]
    words = {word for file in files for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))}
    return words | {name for file in files for name in (file.name, file.stem)}


@pytest.mark.parametrize("document", DOCUMENTS)
def test_names_in_prose_exist(document):
    """A word in backticks is a name of the code: a module, a function, a field, a target of make, an option."""
    quoted = re.findall(r"`([^`\n]+)`", (ROOT / document).read_text(encoding="utf-8"))
    files = [one for one in quoted if re.fullmatch(r"[\w-]+\.(py|md|txt|toml|json|css|js|cff)", one)]
    words = [word for one in quoted if one not in files and "/" not in one for word in re.findall(r"[^\W\d]\w*", one)]
    assert [name for name in files if name not in code_names() and not list(ROOT.glob(f"docs/**/{name}"))] == []
    assert [word for word in words if word not in code_names()] == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_modules_in_prose_exist(document):
    for name in set(re.findall(r"\b(?:idc_core|studio)(?:\.\w+)+", (ROOT / document).read_text(encoding="utf-8"))):
        path = ROOT.joinpath(*name.split("."))
        if not path.is_dir() and not path.with_suffix(".py").exists():
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name


OTHERS = {"NAME", "my_setup.py", "net.onnx", "resnet.py", "vit", "bert", "digits.onnx", "wine.py", "idc.toml"}
"""Names in commands that no file here has; tests/models runs those of the documents that take seconds."""


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_command_line_understands_the_documents(document):
    lines = (ROOT / document).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found = [re.fullmatch(r"(?: {4,}|.*`)(?:\.venv/bin/)?python -m idc_core ([^`]+)(?:`.*)?", line) for line in lines]
    for words in (shlex.split(match[1], comments=True) for match in found if match):
        if not OTHERS & set(words):
            make_parser().parse_args(words)


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
    for file in ("requirements.txt", "requirements-cluster.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                names.add(re.fullmatch(r"([\w\-]+)==[\w.]+", line)[1])
    assert {"torch", "streamlit", "pytest"} <= names
    assert "torchvision" not in names
