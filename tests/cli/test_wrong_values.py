"""Every option of every command, given values of its kind that are wrong: one sentence, status 2, no work begun.

The options are those of the parser itself: one of a kind that is not in `WRONG`, or of no kind, fails.
"""

import argparse
import os
import tracemalloc
from dataclasses import replace

import pytest

from idc_core import cli
from idc_core.cli import _make_parser, main
from idc_core.cli.arguments import (
    LONGEST,
    Argument,
    Assignment,
    Decimals,
    Distinct,
    FileOrFolder,
    FileToOpen,
    FileToRead,
    FileToWrite,
    FolderToRead,
    FolderToWrite,
    Name,
    Network,
    Number,
    Numbers,
    Size,
    Text,
    Texts,
    Word,
)
from idc_core.cli.differential import Guide
from idc_core.datasets import DATASETS

DIGITS = "9" * 5_000
ANY = ("", "\0", "a\nb", "x" * (LONGEST + 1), "x" * 100_000)


def of_number(kind, folder):
    low, high, whole = kind.parameter.low, kind.parameter.high, kind.parameter.is_whole
    yield from (
        "x",
        "nan",
        "inf",
        "-inf",
        "1e400",
        "-1e400",
        DIGITS,
        "-" + DIGITS,
        "1_0",
        " 5",
        "0x5",
        "\u0663",
        "\uff13",
    )
    yield str(low - 1) if whole else repr(low - abs(low) / 2 - 1e-9)
    if whole:
        yield from ("1.5", *(["-5"] if low > -5 else []), "1e3", str(high + 1))
    elif high != float("inf"):
        yield repr(high * 2)


def of_numbers(kind, folder):
    low, high = kind.parameter.low, kind.parameter.high
    yield from (
        f"{low},{low}",
        f"{low},,{high}",
        f"{low},",
        "x",
        f"{low - 1}",
        f"{high + 1}",
        DIGITS,
        f"{low}.5",
        "nan",
    )


def of_name(kind, folder):
    yield from ("nothing", "../../not-there/x", "LENET5-DIGITS", "<b>x</b>", "*")


def of_file_to_read(kind, folder):
    yield from paths(folder)
    yield str(folder / "missing.npz")
    yield str(folder / "to-a-device")


def of_file_to_write(kind, folder):
    yield from paths(folder)
    yield from (str(folder / "no" / "folder.csv"), str(folder / "file" / "below.csv"), str(folder / "to-a-device"))
    yield str(folder / ("x" * 300))


def of_folder_to_write(kind, folder):
    yield from ("/dev/zero", str(folder / "pipe"), str(folder / "file"), str(folder / "file" / "below"))


def paths(folder):
    yield from (str(folder), str(folder / "pipe"), "/dev/zero", "/dev/stdin", f"{folder}/{'x' * 300}/a.csv")


WRONG = {
    Number: of_number,
    Numbers: of_numbers,
    Decimals: lambda kind, folder: ["x", "1,,2", "1,", "nan", "inf", "1e400", "1_0", "\u0663", "1e7", DIGITS[:3_000]],
    Name: of_name,
    Guide: of_name,
    Word: of_name,
    Text: lambda kind, folder: [] if kind.example == "a name" else ["=", ":", "-", ";", "a:"],
    Texts: lambda kind, folder: ["a,a", ",", "a,,b", "a,"],
    Assignment: lambda kind, folder: ["a:b", "a:b=", "a:b=x", "a:b=nan", "a:b=1e400", f"a:b={DIGITS}", "=1"],
    FileToRead: of_file_to_read,
    FileToOpen: of_file_to_read,
    FileOrFolder: of_file_to_read,
    FileToWrite: of_file_to_write,
    FolderToRead: lambda kind, folder: [*of_folder_to_write(kind, folder), str(folder / "missing")],
    Size: lambda kind, folder: [
        "32",
        "32x",
        "x32",
        "32x32x3",
        "0x5",
        "5x5000",
        "32X32",
        "1.5x2",
        "-3x4",
        f"{DIGITS[:99]}x1",
    ],
    FolderToWrite: of_folder_to_write,
    Network: lambda kind, folder: [
        *of_name(kind, folder),
        *(f"lenet5-digits:{bits}" for bits in ("", "x", "1", "17", "4.5", "-4", DIGITS[:3_000])),
        *(f"lenet5-digits={path}" for path in of_file_to_read(kind, folder)),
    ],
}
"""Wrong values of each kind."""

GIVEN = {
    "experiment": ["rq1"],
    "inspect": ["charlstm-sql"],
    "train": ["lenet5-digits"],
    "verify": ["charlstm-sql", "is a digit"],
}
"""What a command needs beside the option: its positional arguments."""

UNFIT = {
    ("analyze", "--data"): [["--data", "20newsgroups"]],
    ("analyze", "--layer"): [["--layer", "nowhere"]],
    ("analyze", "--clustering"): [["--clustering", "dbscan", "--clusters", "3"]],
    ("analyze", "--output"): [["--output", "boxes"]],
    ("analyze", "--class-names"): [["--class-names", "a,b"]],
    ("analyze", "--hold"): [["--hold", "state=0"]],
    ("analyze", "--output-layout"): [["--output-layout", "time-first"]],
    ("fill-grid", "--layer"): [["--layer", "nowhere"]],
    ("report", "--layer"): [["--layer", "nowhere"]],
    ("report", "--class"): [["--class", "ten"]],
    ("report", "--predicted"): [["--predicted", "ten"]],
    ("confusion", "--data"): [["--data", "20newsgroups"]],
    ("confusion", "--layers"): [["--layers", "nowhere"]],
    ("confusion", "--groups"): [["--groups", "a: nosuch"], ["--groups", "a: 1; a: 2"], ["--groups", "a: 1, 1"]],
    ("confusion", "--at-most"): [
        ["--at-most", "a:b=1"],
        ["--at-most", "1:1=1"],
        ["--at-most", "1:2=1", "--groups", "g: 1"],
    ],
    ("differential", "--models"): [["--models", "lenet5-digits"], ["--models", "lenet5-digits", "convnet-cifar10"]],
    ("differential", "--data"): [["--data", "20newsgroups"]],
    ("differential", "--set"): [["--set", "nosuch=1"], ["--set", "limit=-1"], ["--set", "limit=1e9"]],
    ("differential", "--cell"): [["--cell", "0-0"], ["--cell", "0-0", "--choose", "cell", "--m", "3"]],
    ("experiment", "--m"): [["--m", "3", "4"]],
    ("inspect", "--data"): [["--data", "digits"]],
    ("inspect", "--layers"): [["--layers", "nowhere"], ["--epochs", "--layers", "lstm", "logits"]],
    ("inspect", "--keep"): [["--keep", "mine", "--epochs"]],
    ("train", "--checkpoints"): [["--checkpoints", "100000"]],
    ("verify", "--data"): [["--data", "digits"]],
    ("verify", "--layer"): [["--layer", "nowhere"]],
}
"""Values that are right alone, and wrong with the network or with another option."""

FREE = {"HYPOTHESIS", "--inputs", "--save", "--targets", "--text"}
"""Texts that only the data can refuse, or nothing."""


PARSER = _make_parser()


def options():
    """Every option of every command; one that reads its values as that of another command does is rare."""
    commands = next(action for action in PARSER._actions if isinstance(action, argparse._SubParsersAction)).choices
    tried, found = set(), []
    for command, parser in commands.items():
        for action in parser._actions:
            if action.nargs == 0:
                continue
            reading = name_of(action), type(action), action.nargs, repr(vars(action.type) if action.type else None)
            marks = pytest.mark.rare if reading in tried else ()
            tried.add(reading)
            found.append(pytest.param(command, action, marks=marks))
    return found


def name_of(action):
    return action.option_strings[-1] if action.option_strings else action.metavar


@pytest.fixture(autouse=True)
def no_work(monkeypatch):
    """Fail where data is loaded: all work begins with it."""

    def load(split, limit, on_progress):
        pytest.fail("the work has begun")

    for name, entry in list(DATASETS.items()):
        monkeypatch.setitem(DATASETS, name, replace(entry, load=load))


@pytest.fixture(autouse=True)
def one_parser(monkeypatch):
    """Make the parser once: to make it takes four times as long as to refuse a value."""
    monkeypatch.setattr(cli, "_make_parser", lambda: PARSER)


@pytest.fixture
def folder(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("something")
    (tmp_path / "to-a-device").symlink_to("/dev/zero")
    return tmp_path


def refused(capsys, argv):
    status = main(argv)
    output = capsys.readouterr()
    what = f"{[part[:80] for part in argv]}: {status}, {output.out!r}, {output.err[:500]!r}"
    assert (status, output.out) == (2, ""), what
    assert len(output.err.splitlines()) == 1, what
    assert output.err.endswith(".\n"), what
    assert "Traceback" not in output.err, what
    assert len(output.err) < 1_000, what
    return output.err


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("command", "action"), options(), ids=lambda one: one if isinstance(one, str) else name_of(one)
)
def test_every_wrong_value_is_refused_in_a_sentence_before_any_work(capsys, folder, command, action):
    before = sorted(folder.iterdir())
    assert isinstance(action.type, Argument), (
        f"{name_of(action)} takes any text: give it a type of idc_core.cli.arguments"
    )
    wrong = [*WRONG[type(action.type)](action.type, folder), *ANY]
    rest = GIVEN.get(command, [])
    several = action.nargs in ("+", "*")
    for value in dict.fromkeys(wrong):
        if action.option_strings:
            argv = [command, *rest, f"{name_of(action)}={value}"]
        else:
            place = int(action.dest == "hypothesis")
            argv = [command, *rest[:place], value, *rest[place + 1 :]]
        told = refused(capsys, argv)
        if value and value.isprintable() and len(value) < 40:
            assert value in told.replace("\\\\", "\\") or value.split("=")[-1] in told
    if several:
        assert isinstance(action, Distinct), f"{name_of(action)} takes an item twice: give it the action Distinct"
        right = {
            FileToOpen: __file__,
            FileOrFolder: __file__,
            Number: "6",
            Network: "lenet5-digits",
            Assignment: "limit=1",
            Text: "lstm",
        }
        item = next(iter(action.type)) if isinstance(action.type, Name) else right[type(action.type)]
        named = [name_of(action)] if action.option_strings else []
        assert "twice" in refused(capsys, [command, *rest, *named, item, item])
    if action.nargs == "+":
        refused(capsys, [command, *rest, name_of(action)])
    for more in UNFIT.get((command, name_of(action)), []):
        refused(capsys, [command, *rest, *more])
    any_text = isinstance(action.type, Text) and action.type.form == Text.form
    by_other = any_text or isinstance(action.type, Texts | Assignment)
    assert not by_other or (command, name_of(action)) in UNFIT or name_of(action) in FREE
    assert sorted(folder.iterdir()) == before


def test_a_huge_value_takes_no_memory(capsys):
    tracemalloc.start()
    for value in (DIGITS, "9" * 100_000, "1e308", "1000000000"):
        refused(capsys, ["analyze", f"--m={value}"])
        refused(capsys, ["confusion", f"--top={value}"])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


@pytest.mark.parametrize("home", ["a file", "below a file", "nobody's"])
def test_a_home_that_cannot_be_is_one_sentence(capsys, folder, monkeypatch, home):
    places = {"a file": folder / "file", "below a file": folder / "file" / "x", "nobody's": "~no-such-user/x"}
    monkeypatch.setenv("IDC_HOME", str(places[home]))
    assert "IDC_HOME" in refused(capsys, ["analyze"])
