"""The documents hold when they are followed: their commands and examples run, and print what is shown.

A document is followed in an empty folder outside the repository. A file that it says to save is saved there. Blocks of
`console` and `python` are run in their order, unless the comment above them says ``<!-- not run: why -->``; those with
``<!-- slow -->`` are run by the slow tests. The lines below a command, and the `text` block below an example, are what
is printed; `...` stands for anything, in a line or for any number of lines. A command succeeds unless `echo $?` below
it shows another status.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
import torch

from idc_core.cli import main
from idc_core.lrp.rules import RULES
from idc_core.opening import setup_files

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"]
DOCUMENTS += sorted(str(file.relative_to(ROOT)) for file in (ROOT / "docs").rglob("*.md"))
SECONDS = re.compile(r"\b\d+\.\d+ s\b")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, content and first line, the comment above it, and the file it is saved as."""

    language: str
    text: str
    line: int
    mark: str
    file: str

    @property
    def steps(self):
        """Commands with the lines that are shown below each."""
        parts = re.split(r"^\$ (.*(?:\\\n.*)*)\n", self.text, flags=re.MULTILINE)
        return list(zip(parts[1::2], parts[2::2], strict=True))


@cache
def blocks(document):
    """Return the fenced blocks of a document, and what is outside of them."""
    found, outside, above, opened = [], [], "", None
    for number, line in enumerate((ROOT / document).read_text(encoding="utf-8").splitlines(), 1):
        if opened is not None:
            if line == "```":
                text = "".join(f"{one}\n" for one in opened[2])
                mark = re.search(r"<!-- (.*) -->\Z", above.rstrip())
                saved = re.search(r"[Ss]ave this as \*\*([\w.-]+)\*\*", above.strip().rsplit("\n\n", 1)[-1])
                found.append(Block(*opened[:1], text, opened[1], mark[1] if mark else "", saved[1] if saved else ""))
                above, opened = "", None
            else:
                opened[2].append(line)
        elif line.startswith("```"):
            opened = line[3:], number, []
        else:
            above += f"{line}\n"
            outside.append(line)
    assert opened is None, f"{document} ends in a block"
    return found, outside


def to_run(document, slow):
    kinds = ("", "slow") if slow else ("",)
    return [one for one in blocks(document)[0] if one.language in ("console", "python") and one.mark in kinds]


class Terminal:
    """A person's terminal in a folder of theirs, where the package is installed."""

    def __init__(self):
        self.status = 0
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
        self._environment = {**clean, "PYTHONPATH": str(ROOT)}

    def run(self, line):
        """Return what a command prints."""
        words = shlex.split(line, comments=True)
        if words == ["echo", "$?"]:
            return f"{self.status}\n"
        if words[0] == "idc-studio":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
                self.status = main(words[1:])
            return printed.getvalue().replace("python -m idc_core", "idc-studio")
        assert words[0] == "python", f"{line} is no command that is run here: say why above the block"
        done = subprocess.run(
            [sys.executable, *words[1:]],
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.status = done.returncode
        return done.stdout


def compare(shown, printed, where):
    """Fail where something else is printed than shown; how long something took is not compared."""
    lines = (SECONDS.sub("N s", line).rstrip() for line in shown.splitlines())
    pattern = "".join(
        r"(?:.*\n)*" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in lines
    )
    said = "".join(f"{SECONDS.sub('N s', line).rstrip()}\n" for line in printed.splitlines())
    assert re.fullmatch(pattern, said), f"{where} shows\n{shown}\nand this is printed:\n{printed}"


def follow(document, slow):
    """Do what a document says, in the present folder."""
    terminal, everything = Terminal(), blocks(document)[0]
    for block, following in zip(everything, [*everything[1:], None], strict=True):
        where = f"{document}, line {block.line}"
        if block.file:
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif block not in to_run(document, slow):
            continue
        elif block.language == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, where, "exec"), {"__name__": "__main__"})  # noqa: S102 (the point of the test)
            if following and following.language == "text":
                compare(following.text, printed.getvalue(), where)
        else:
            for number, (line, shown) in enumerate(block.steps):
                printed = terminal.run(line)
                if shown.strip():
                    compare(shown, printed, f"{where}, {line}")
                told = number + 1 < len(block.steps) and block.steps[number + 1][0] == "echo $?"
                assert told or not terminal.status or line == "echo $?", f"{where}: {line} fails with\n{printed}"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder outside the repository, and nothing left open or drawn from the generator afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT))
    rules = dict(RULES)
    with torch.random.fork_rng():
        yield tmp_path
    setup_files._close_all()
    for name in set(RULES) - set(rules):
        del RULES[name]


@pytest.mark.parametrize("document", [one for one in DOCUMENTS if to_run(one, slow=False)])
def test_a_document_holds_when_it_is_followed(document, folder):
    follow(document, slow=False)


@pytest.mark.slow
@pytest.mark.parametrize("document", [one for one in DOCUMENTS if to_run(one, slow=True) != to_run(one, slow=False)])
def test_a_document_holds_when_it_is_followed_to_its_end(document, folder):
    for example in (ROOT / "docs" / "examples").glob("*.py"):
        shutil.copy(example, folder)
    follow(document, slow=True)


COMMAND = re.compile(r"\s*(?:\$ )?(?:\.venv/bin/)?(?:idc-studio|python3?|pip|make|ray|git|podman|export|source|cd) \S")


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_command_and_example_is_run_or_says_why_not(document):
    found, outside = blocks(document)
    assert {one.language for one in found} <= {"console", "python", "toml", "text", "mermaid"}
    for block in found:
        where = f"{document}, line {block.line}"
        assert block.mark in ("", "slow") or re.match(r"not run: \w", block.mark), f"{where}: {block.mark}"
        if block.language == "console":
            assert block.text.startswith("$ "), where
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "text":
            assert not any(map(COMMAND.match, block.text.splitlines())), f"{where}: a command in a block of text"
    assert [line for line in outside if line.startswith("    ")] == [], "indented blocks are not run: fence them"


def test_what_is_printed_is_compared():
    compare("a ... c\n...\nz\n", "a b c\nd\ne\nz\n", "here")
    compare("1 of 2 limits (0.9 s)\n", "1 of 2 limits (12.3 s)\n", "here")
    for shown in ("a\n", "a b c\n...\ny\n", "a b c d\n...\n"):
        with pytest.raises(AssertionError, match="here shows"):
            compare(shown, "a b c\nd\ne\nz\n", "here")
