"""`python -m idc_core report`: the same as the engine's report, files that appear whole, mistakes in a sentence."""

import errno
import json
import shlex
from pathlib import Path

import jsonschema
import pytest

from idc_core.base import files
from idc_core.cli import main
from idc_core.report.making import command_of
from idc_core.store.notes import delete_note, write_note
from tests.report.reading import SCHEMA, Page

SMALL = ("--limit-train", "300", "--limit-test", "100", "--m", "3")


def run(capsys, *arguments):
    status = main(["report", *map(str, arguments)])
    output = capsys.readouterr()
    return status, output.out, output.err


def test_the_command_that_a_report_names_makes_it_again(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    note = write_note("Look <here>.", "neuron 5", "LeNet-5", {"layer": "fc1", "neuron": "5"})
    try:
        options = (*SMALL, "--layer", "fc1", "--class", "3", "--class", "8", "--clusters", "3", "--drop-zeros")
        status, out, err = run(capsys, *options, "--out", "mine.html", "--json=mine.json")
        assert (status, out, err) == (0, "written to mine.html\nwritten to mine.json\n", "")
        document = json.loads(Path("mine.json").read_text())
        jsonschema.validate(document, SCHEMA)
        assert document["classes"] == ["3", "8"]
        assert document["settings"] | {"m": "3", "clusters": "3", "drop_zeros": "yes"} == document["settings"]
        assert [one["text"] for one in document["notes"]] == ["Look <here>."]
        assert document["training"]["inputs"] == 300
        words = shlex.split(document["command"])
        assert words[:4] == ["python", "-m", "idc_core", "report"]
        assert main(words[3:]) == 0
    finally:
        delete_note(note.name)
    assert Path("report.html").read_bytes() == Path("mine.html").read_bytes()
    said = Page(Path("mine.html").read_bytes()).texts
    assert document["command"] in said
    assert "Look <here>." in said
    assert sorted(one.name for one in tmp_path.iterdir()) == ["mine.html", "mine.json", "report.html"]


def test_setup_files_are_named_again_and_written_files_are_not():
    words = ["report", "--out", "a b.html", "--m", "3", "--json=x.json", "--class", "a 'b"]
    again = command_of(words, [Path("/my folder/setup.py")])
    assert again == (
        "python -m idc_core report --m 3 --class 'a '\"'\"'b' --setup '/my folder/setup.py' --out report.html"
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--class", "ten"), ("'ten'", "0, 1, 2")),
        (("--layer", "fc9"), ("'fc9'", "fc2")),
        (("--data", "cifar10"), ("cifar10", "--data")),
        (("--m", "100"), ("m", "100", "84")),
        (("--out", "no/such/folder/report.html"), ("no/such/folder", "--out")),
    ],
)
def test_mistakes_get_a_sentence(capsys, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *SMALL, *arguments)
    assert (status, out) == (2, "")
    assert len(err.strip().splitlines()) == 1
    assert err.strip().endswith(".")
    assert all(word in err for word in words)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_leaves_the_older_report(capsys, tmp_path, monkeypatch):
    file = tmp_path / "report.html"
    file.write_text("an older report")

    def full(path, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.Path, "write_bytes", full)
    status, _, err = run(capsys, *SMALL, "--out", file)
    assert status == 2
    assert err == f"{file} cannot be written (No space left on device); name another file with --out.\n"
    assert file.read_text() == "an older report"
    assert list(tmp_path.iterdir()) == [file]
