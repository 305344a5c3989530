"""The command line as a whole: help, list, interruption, exit statuses."""

import io
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from idc_core import __version__
from idc_core.base import progress
from idc_core.base.threads import _SPINS
from idc_core.cli import COMMANDS, main
from idc_core.cli.console import ProgressLine, table
from idc_core.cli.registries import KINDS
from idc_core.errors import DataError
from idc_core.models import MODELS

ROOT = Path(__file__).resolve().parents[2]


def python(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_help_names_every_command_and_loads_no_torch():
    program = (
        "import sys\n"
        "from idc_core.cli import main\n"
        "try:\n    main(['--help'])\n"
        "except SystemExit:\n    print('torch' in sys.modules)\n"
    )
    done = python("-c", program)
    assert done.returncode == 0, done.stderr
    *text, torch_loaded = done.stdout.splitlines()
    assert torch_loaded == "False"
    for name in COMMANDS:
        assert any(line.split()[:1] == [name] for line in text)


@pytest.mark.parametrize("arguments", [[], ["--port", "8502"]])
def test_without_a_command_it_opens_the_dashboard(monkeypatch, arguments):
    opened = []
    monkeypatch.setattr(COMMANDS["studio"], "run", lambda arguments: opened.append(arguments.port) or 0)
    assert main(arguments) == 0
    assert opened == [int(arguments[-1]) if arguments else 8501]


def test_it_says_its_version(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["--version"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"IDC Studio {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(capsys, command):
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"python -m idc_core {command}" in capsys.readouterr().out


def test_waiting_threads_sleep_soon(monkeypatch, capsys):
    """OpenMP reads the setting when torch is imported, so it is there by then; a person's own is kept."""
    for name in ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT"):
        monkeypatch.delenv(name, raising=False)
    program = "import os; from idc_core.cli import main; main(['list', 'data']); print(os.environ['GOMP_SPINCOUNT'])"
    assert python("-c", program).stdout.splitlines()[-1] == str(_SPINS)
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    main(["list", "data"])
    assert "GOMP_SPINCOUNT" not in os.environ


def test_list_shows_models_with_their_layers(capsys):
    assert main(["list", "models"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()[1:]}
    assert list(rows) == list(MODELS)
    for name, entry in MODELS.items():
        assert rows[name][0] == entry.dataset
        layers = [layer.strip("[]") for layer in rows[name][1:]]
        assert layers == list(entry.build().layers)
        assert f"[{entry.default_layer}]" in rows[name]


def test_list_shows_every_registry_whole(capsys):
    assert main(["list"]) == 0
    everything = capsys.readouterr().out
    tables = {table.split()[0].lower(): table.splitlines()[1:] for table in everything.strip().split("\n\n")}
    assert list(tables) == list(KINDS)
    for name, kind in KINDS.items():
        entries = getattr(import_module(kind.home), kind.registry)
        assert entries
        assert [line.split()[0] for line in tables[name]] == list(entries)
        assert all(len(line.split()) > 2 for line in tables[name])
    assert main(["list", "attacks"]) == 0
    alone = capsys.readouterr().out.splitlines()
    assert [line.split() for line in alone[1:]] == [line.split() for line in tables["attacks"]]


def test_listing_models_and_data_needs_no_torch():
    program = "import sys; from idc_core.cli import main; main(['list', KIND]); print('torch' in sys.modules)"
    for kind in ("models", "data"):
        assert python("-c", program.replace("KIND", repr(kind))).stdout.splitlines()[-1] == "False"


def test_a_reader_that_stops_reading_is_no_mistake():
    """As in `python -m idc_core list | head -0`."""
    with subprocess.Popen(
        [sys.executable, "-m", "idc_core", "list", "data"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.close()
        errors = process.stderr.read()
    assert (process.returncode, errors) == (0, "")


@pytest.mark.parametrize(
    ("raised", "status", "sentence"),
    [
        (DataError("The file is cut off."), 2, "The file is cut off.\n"),
        (KeyboardInterrupt(), 130, "\nStopped by Ctrl-C before the work was finished.\n"),
    ],
)
def test_what_goes_wrong_becomes_a_sentence_and_a_status(capsys, monkeypatch, raised, status, sentence):
    def fail(arguments):
        raise raised

    monkeypatch.setattr(COMMANDS["list"], "run", fail)
    assert main(["list"]) == status
    assert capsys.readouterr() == ("", sentence)


@pytest.mark.parametrize(
    "arguments", [["measure"], ["--unknown"], ["list", "x"], ["analyze", "--unknown"], ["analyze", "--mod", "x"]]
)
def test_unknown_arguments(capsys, arguments):
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert len(output.err.splitlines()) == 1
    assert "; see python -m idc_core" in output.err


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_one_line_on_a_terminal_and_nothing_elsewhere():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        with ProgressLine(stream) as line:
            assert line(1000, 2000, "reading") is True
    assert terminal.getvalue() == "\r\x1b[Kreading: 1,000 of 2,000\r\x1b[K"
    assert file.getvalue() == ""


def test_progress_says_how_long_it_still_takes_and_no_0_of_0(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    terminal = Terminal()
    with ProgressLine(terminal) as line:
        for clock[0], *said in ((1.0, 0, 0, "waiting"), (2.0, 0, 90, "reading"), (62.0, 30, 90, "reading")):
            line(*said)
    assert terminal.getvalue().split("\r\x1b[K")[1:] == [
        "waiting",
        "reading: 0 of 90",
        "reading: 30 of 90, about 2 min left",
        "",
    ]


def test_progress_is_cleared_after_a_failure():
    terminal = Terminal()

    def work():
        with ProgressLine(terminal) as line:
            line(1, 2, "reading")
            raise DataError("The file is cut off.")

    with pytest.raises(DataError):
        work()
    assert terminal.getvalue().endswith("\r\x1b[K")


def test_table_aligns_columns():
    assert table([("A", "LONG"), ("bb", "1")], "<>") == "A   LONG\nbb     1"
