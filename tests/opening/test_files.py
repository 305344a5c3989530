"""Files as a command line names them, told to other processes."""

import pytest

from idc_core.cli import _make_parser
from idc_core.cli.own_options import _own_files
from idc_core.errors import IdcError
from idc_core.opening.files import DATA, FileOptions, OwnFile, OwnFiles


def test_others_are_told_what_the_command_line_says(tmp_path):
    (tmp_path / "net.onnx").touch()
    options = [
        "--data=digits", "--mean=0.5,0.25", "--deviation=0.5", "--factor=255.0", "--order=BGR", "--layout=last",
        "--explain=mean-pixels", "--trust", "--size=4x5", "--channels=1", f"--tokenizer={tmp_path}", "--split-seed=0",
    ]  # fmt: skip
    own = _own_files(_make_parser().parse_args(["studio", str(tmp_path / "net.onnx"), *options]))
    there = OwnFiles.from_json(own.to_json(), "What was told")
    assert there.words == own.words == options
    (file,) = there.files
    assert there.options.prepared(None) == own.options.prepared(None)
    assert there.options.network(file).scaling == own.options.network(file).scaling


@pytest.mark.parametrize("text", ["", "[]", '{"files": 3}', '{"files": [], "options": {"trust": "yes"}}'])
def test_what_was_not_told_so_is_a_sentence(text):
    with pytest.raises(IdcError, match=r"^What was told .*\.$"):
        OwnFiles.from_json(text, "What was told")


def test_an_option_needs_a_file_that_it_is_for():
    data = OwnFiles((OwnFile(DATA, "/tests.npz"),), FileOptions())
    with pytest.raises(
        IdcError, match=r"^trust is for a network that is given by a path; leave it out, or give one\.$"
    ):
        data.enter(["trust"])
    with pytest.raises(IdcError, match=r"^--size is for data that are given by a path"):
        OwnFiles((), FileOptions()).enter((), ["--size"])
