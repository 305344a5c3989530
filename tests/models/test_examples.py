"""The examples of docs/OWN-NETWORK.md that train in seconds, from an empty folder to the covered cells."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from idc_core import setup_files
from idc_core.cli import main

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "OWN-NETWORK.md").read_text(encoding="utf-8")


def commands(script):
    """The commands of the example that begins with a script, as the document has them."""
    (block,) = re.findall(rf"^    python {script}\n((?:    python -m idc_core .*\n)+)", DOCUMENT, re.MULTILINE)
    return [shlex.split(line)[3:] for line in block.splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("script", ["wine.py", pytest.param("digits_onnx.py", marks=pytest.mark.rare)])
def test_an_example_from_an_empty_folder(script, tmp_path, monkeypatch, capsys):
    shutil.copy(ROOT / "docs" / "examples" / script, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    subprocess.run([sys.executable, script], check=True, capture_output=True)
    (analyze,) = (words for words in commands(script) if words[0] == "analyze")
    try:
        assert main(analyze) == 0
    finally:
        setup_files.close_all()
    accuracy, covered, cells = re.search(
        r"accuracy ([\d.]+) %(?:.*\n)*covered (\d+) of (\d+)", capsys.readouterr().out
    ).groups()
    assert float(accuracy) > 90
    assert f"Accuracy {round(float(accuracy))} %, {covered} of {cells} cells" in DOCUMENT
