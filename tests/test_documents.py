"""The documents are true: paths and names exist, commands are understood, every module and page is where it is listed.

test_documents_followed.py runs their commands and examples.
"""

import importlib
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from idc_core.cli import _make_parser
from studio.shell.pages import PAGES

ROOT = Path(__file__).resolve().parents[1]
RESULTS = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs" / "results").glob("*.md"))
PAGES_OF_DOCS = sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").glob("*.md"))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", *PAGES_OF_DOCS, *RESULTS, "benchmarks/RESULTS.md")
CODE = (
    "app.py",
    "Makefile",
    "pyproject.toml",
    "requirements*.txt",
    *(f"{folder}/**/*.py" for folder in ("idc_core", "studio", "pages", "benchmarks", "docs")),
    "tests/**/*.py",
)


def blocks(document, language):
    fenced = re.compile(rf"^```{language}\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    return fenced.findall((ROOT / document).read_text(encoding="utf-8"))


def planned_paths():
    """Paths of the tree in ARCHITECTURE.md: two spaces of indentation a level, name, then purpose."""
    *_, tree = blocks("docs/ARCHITECTURE.md", "text")
    folders, paths = [], []
    for line in tree.splitlines():
        name = line.split()[0]
        depth = (len(line) - len(line.lstrip())) // 2
        folders[depth:] = [name]
        paths.append("".join(folders))
    return paths


def test_the_readme_is_short_and_leads_to_every_document():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 150
    assert [page for page in PAGES_OF_DOCS if f"]({page})" not in readme] == []
    assert max(len(example.splitlines()) for example in blocks("README.md", "python")) <= 20


def test_the_documents_list_the_pages_as_the_dashboard_does():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+\?) \| ([^|]+) \|$", readme, re.MULTILINE)
    assert rows == [(page.title, page.question, page.help) for page in PAGES.values()]
    pages = (ROOT / "docs" / "PAGES.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## (.+)\n\n\*\*([^*]+\?)\*\*", pages, re.MULTILINE)
    assert sections == [(page.title, page.question) for page in PAGES.values()]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_and_pictures_exist(document):
    prose = re.sub(r"^```.*?^```$", "", (ROOT / document).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [one for one in re.findall(r"\]\(([^)#]+)", prose) if not re.match(r"https://|http://127\.0\.0\.1:", one)]
    missing = [target for target in targets if not ((ROOT / document).parent / target).exists()]
    assert not missing


@pytest.mark.parametrize("document", DOCUMENTS)
def test_paths_in_prose_exist(document):
    """A word in backticks with a slash is a path from the root, unless it holds a placeholder or is a person's own."""
    words = re.findall(r"`([\w.\-]+/[\w./\-]*)`", (ROOT / document).read_text(encoding="utf-8"))
    own = re.compile(r"NAME|IDC_HOME/|\.streamlit/secrets\.toml")
    assert [word for word in words if not own.search(word) and not (ROOT / word).exists()] == []


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
    known = code_names() | {file.name for file in (*ROOT.glob("docs/**/*"), *ROOT.glob(".streamlit/*"))}
    assert [name for name in files if name not in known and "NAME" not in name] == []
    assert set(words) - code_names() - OF_OTHERS == set()


OF_OTHERS = {"usage", "flop_counter", "docker", "serverAddress", "STREAMLIT_SERVER_MAX_UPLOAD_SIZE"}
"""Words of Ray, PyTorch, Podman and Streamlit."""


@pytest.mark.parametrize("document", DOCUMENTS)
def test_modules_in_prose_exist(document):
    text = (ROOT / document).read_text(encoding="utf-8").replace("studio.example.org", "")
    for name in set(re.findall(r"\b(?:idc_core|studio)(?:\.\w+)+", text)):
        path = ROOT.joinpath(*name.split("."))
        if not path.is_dir() and not path.with_suffix(".py").exists():
            module, _, attribute = name.rpartition(".")
            assert hasattr(importlib.import_module(module), attribute), name


FILES = {"idc.toml", "my_setup.py", "net.onnx", "digits.onnx", "resnet.py", "wine.py", "vit", "bert"}
FILES |= {"things.onnx", "things-vit", "cells.onnx", "common_det.onnx"}
OTHERS = FILES | {"NAME", "COMMAND"}
"""Names in commands that no file here has; those of the documents that take seconds are run."""


@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_command_line_understands_the_documents(document):
    text = (ROOT / document).read_text(encoding="utf-8").replace("\\\n", " ")
    command = r"(?:(?:\.venv/bin/)?python -m idc_core|idc-studio)"
    found = re.findall(rf"^(?: {{4,}}|\$ ){command} (.+)$|`{command} ([^`]+)`", text, re.MULTILINE)
    for words in (shlex.split(line or quoted, comments=True) for line, quoted in found):
        if not OTHERS & set(words) and "--version" not in words:
            _make_parser().parse_args(words)


def test_plan_names_what_exists():
    missing = [path for path in planned_paths() if not (ROOT / path).exists()]
    assert not missing


def test_plan_names_every_module_of_the_engine():
    engine = ROOT / "idc_core"
    modules = {f"idc_core/{file.name}" for file in engine.glob("*.py") if file.name != "__init__.py"}
    packages = {f"idc_core/{file.parent.name}/" for file in engine.glob("*/__init__.py")}
    assert modules | packages <= set(planned_paths())


def test_results_name_every_page_of_theirs():
    index = (ROOT / "docs" / "RESULTS.md").read_text(encoding="utf-8")
    assert RESULTS
    assert [page for page in RESULTS if f"]({Path(page).relative_to('docs')})" not in index] == []


def test_make_help_lists_every_target():
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.search(r"^\.PHONY: (.*)$", makefile, re.MULTILINE)[1].split())
    explained = set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))
    assert {"run", "test", "test-slow", "test-fast", "lint", "types", "bench", "clean", "help"} <= explained
    assert targets - explained == {"browser"}  # the one that is a step of others


def test_requirements_are_pinned_and_leave_torchvision_out():
    names = set()
    for file in ("requirements.txt", "requirements-cluster.txt", "requirements-dev.txt"):
        for line in (ROOT / file).read_text().splitlines():
            if line and not line.startswith(("#", "-r ")):
                names.add(re.fullmatch(r"([\w\-]+)==[\w.]+", line)[1])
    assert {"torch", "streamlit", "pytest"} <= names
    assert "torchvision" not in names
