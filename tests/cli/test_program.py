"""A person's code that ends the program, or fails in a way of its own, is no success: a sentence, and status 2."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from idc_core.cli import main
from idc_core.opening import setup_files
from tests.cli.dying import COMMANDS, write
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parents[2]
ENDS = {
    "sys.exit()": "SystemExit",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise GeneratorExit": "GeneratorExit",
    "raise StopIteration": "StopIteration",
    "raise Odd('so it is')": "Odd: so it is",
    "raise Mute": "Mute, whose text cannot be had (RuntimeError)",
}


@pytest.fixture(autouse=True)
def closed():
    yield
    setup_files._close_all()


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("end", ENDS)
def test_an_end_of_the_program_is_a_sentence(tmp_path, monkeypatch, capsys, command, end):
    write(tmp_path, end)
    monkeypatch.chdir(tmp_path)
    assert main(COMMANDS[command]) == 2
    told = capsys.readouterr()
    assert ENDS[end] in told.err
    assert "Traceback" not in told.err
    assert ("could not run" in told.out) is (command == "check")


def begin(folder, words):
    """Start a command as a person does, in a folder."""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "idc_core", *words]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_silence_is_no_success(tmp_path, command):
    write(tmp_path, "os._exit(0)")
    process = begin(tmp_path, COMMANDS[command])
    out, err = process.communicate()
    assert (process.returncode, out) == (2, "")
    assert err.startswith("The process ended with status 0 before the command was done: it reached no result. ")


@pytest.mark.rare
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of other processes")
def test_a_signal_that_ends_the_code_is_named(tmp_path):
    write(tmp_path, "os.kill(os.getpid(), 9)")
    process = begin(tmp_path, COMMANDS["check"])
    assert process.communicate()[1].startswith(
        "The process was ended by the signal SIGKILL before the command was done"
    )
    assert process.returncode == 2


@pytest.mark.rare
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals of other processes")
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)])
def test_what_ends_the_command_ends_the_code(tmp_path, number, status):
    """Ctrl-C is passed on and answered; where the first process is killed, the one with the code ends by itself."""
    write(tmp_path, "pathlib.Path('at').write_text(str(os.getpid())); time.sleep(600)")
    process, at = begin(tmp_path, COMMANDS["analyze"]), tmp_path / "at"
    assert wait_until(lambda: at.exists() and at.read_text() != "")
    other = psutil.Process(int(at.read_text()))
    assert other.pid != process.pid
    process.send_signal(number)
    err = process.communicate()[1]
    assert process.returncode == status
    assert ("Stopped by Ctrl-C" in err) is (number == signal.SIGINT)
    assert wait_until(lambda: not other.is_running() or other.status() == psutil.STATUS_ZOMBIE)


def test_statuses_and_output_of_a_command_stay_its_own(tmp_path):
    write(tmp_path, "pass")
    process = begin(tmp_path, COMMANDS["check"])
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "1 of 1 limits kept" in out
    process = begin(tmp_path, ("check", "--help"))
    assert process.communicate()[0].startswith("usage: python -m idc_core check")
    assert process.returncode == 0
