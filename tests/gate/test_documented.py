"""docs/CHECKS.md and the workflow are true: every key is named, examples are read, commands and paths are there."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from idc_core.cli import make_parser
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
    (example,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / "idc.toml").write_text(example, encoding="utf-8")
    assert [len(check.limits) for check in read_gate(tmp_path / "idc.toml").checks] == [4]
    own = read_gate(ROOT / ".ci" / "idc.toml")
    assert own.baseline.exists()
    assert len(own.checks) == 3


def test_the_workflow_runs_commands_that_are_understood(tmp_path, monkeypatch):
    workflow = yaml.safe_load((ROOT / "docs" / "examples" / "idc-check.yml").read_text(encoding="utf-8"))
    steps = workflow["jobs"]["check"]["steps"]
    commands = [step["run"].split() for step in steps if "run" in step]
    (words,) = [one[3:] for one in commands if one[:3] == ["python", "-m", "idc_core"]]
    monkeypatch.chdir(tmp_path)
    Path("idc.toml").touch()
    arguments = make_parser().parse_args(words)
    assert arguments.command == "check"
    (kept,) = [step["with"]["path"] for step in steps if "artifact" in step.get("uses", "")]
    assert str(arguments.junit) == kept
    (files,) = [one[one.index("-r") + 1] for one in commands if "-r" in one]
    assert (ROOT / files.removeprefix("idc-studio/")).exists()
