"""docs/CHECKS.md, the action and the workflow are true: every key is named, examples are read, and steps run."""

import os
import re
import shlex
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from idc_core.datasets.preparation import Preparation
from idc_core.gate import LIMITS, read_gate
from idc_core.gate.settings import Settings
from idc_core.models.scaling import Scaling

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "CHECKS.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [Settings, Preparation, Scaling, *LIMITS.values()], ids=lambda kind: kind.__name__)
def test_every_key_is_explained(kind):
    assert [one.name for one in fields(kind) if f"`{one.name}`" not in PAGE] == []


def test_every_kind_of_limit_is_explained():
    assert re.findall(r'^\| `"([a-z-]+)"` \|', PAGE, re.MULTILINE) == list(LIMITS)


def test_the_example_and_the_projects_own_file_are_read(tmp_path):
    (example, *_) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "idc.toml").write_text(example, encoding="utf-8")
    assert [len(check.limits) for check in read_gate(tmp_path / "idc.toml").checks] == [4]
    own = read_gate(ROOT / ".ci" / "idc.toml")
    assert own.baseline.exists()
    assert len(own.checks) == 3


EXAMPLES = ROOT / "docs" / "examples"
ACTION = yaml.safe_load((EXAMPLES / "idc-check" / "action.yml").read_text(encoding="utf-8"))


def test_the_workflow_gives_the_action_what_it_takes():
    workflow = yaml.safe_load((EXAMPLES / "idc-check.yml").read_text(encoding="utf-8"))
    *_, checkout, check = workflow["jobs"]["check"]["steps"]
    assert check["uses"] == f"./{checkout['with']['path']}/docs/examples/idc-check"
    assert set(check["with"]) <= set(ACTION["inputs"])
    rows = PAGE[PAGE.index("## A workflow") :]
    assert re.findall(r"^\| `([a-z-]+)` \|", rows, re.MULTILINE) == list(ACTION["inputs"])


def step(name):
    (found,) = [one for one in ACTION["runs"]["steps"] if one.get("name") == name]
    return found


def bash(name, tools, **environment):
    """Run a step of the action with these programs in front of others; return its status and what it prints."""
    folder = Path("tools")
    folder.mkdir(exist_ok=True)
    for tool, text in tools.items():
        (folder / tool).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (folder / tool).chmod(0o755)
    done = subprocess.run(
        ["bash", "-eo", "pipefail", "-c", step(name)["run"]],
        env={**os.environ, "PATH": f"{folder.absolute()}:{os.environ['PATH']}", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_action_installs_its_own_repository_or_what_it_is_told(empty):
    here = str(EXAMPLES / "idc-check")
    _, own = bash("Install IDC Studio", {"pip": 'echo "$@"'}, INSTALL="", GITHUB_ACTION_PATH=here)
    command, place, *_ = own.split()
    assert command == "install"
    assert Path(place).resolve() == ROOT
    assert bash("Install IDC Studio", {}, INSTALL="echo mine\nfalse\necho more") == (1, "mine\n")


@pytest.mark.slow
def test_the_action_checks_and_every_report_is_there(empty):
    (empty / "limits.toml").write_text('[[check]]\nmodel = "lenet1-digits"\n[[check.limit]]\nat_least = 0.99\n')
    tool = f'PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m idc_core "$@"'
    told = {"FILE": "limits.toml", "JUNIT": "found.xml", "GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": "summary.md"}
    assert set(step("Check")["env"]) == {"FILE", "JUNIT"}
    status, printed = bash("Check", {"idc-studio": tool}, **told)
    assert status == 1
    assert "::error file=limits.toml" in printed
    assert "<testsuite" in (empty / "found.xml").read_text()
    assert "lenet1-digits" in (empty / "summary.md").read_text()
    assert step("Keep the results")["with"]["path"] == step("Check")["env"]["JUNIT"]
