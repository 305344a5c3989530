"""One number of threads wherever a number that is shown is computed."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from idc_core import store
from idc_core.base.threads import _NUMBER, _NUMPY, number, one_thread, settle

ROOT = Path(__file__).parents[2]


def python(*arguments, **environment):
    """Run Python as a person would, who has said nothing of threads but what is given here."""
    inherited = {name: value for name, value in os.environ.items() if name not in (_NUMBER, _NUMPY)}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=inherited | environment, check=True, capture_output=True, text=True
    ).stdout


SAID = [{}, *(pytest.param({_NUMBER: said}, marks=pytest.mark.rare) for said in ("1", "3"))]
"""Environments with which numbers are computed."""


@pytest.mark.slow
@pytest.mark.parametrize("said", SAID)
def test_server_worker_and_command_line_give_the_same_numbers_bit_for_bit(tmp_path, said):
    found = json.loads(python("-m", "tests.equal_numbers", str(tmp_path), **said).splitlines()[-1])
    assert set(found) == {"server", "worker", "command line"}
    assert found["server"] == found["worker"] == found["command line"]


def test_the_config_file_says_how_many_threads_compute_in_every_thread_of_python(tmp_path):
    config = tmp_path / "config.toml"
    config.write_text("[limits]\nthreads = 1\n", encoding="utf-8")
    program = """
        from idc_core.base.threads import number, settle
        settle()
        from concurrent.futures import ThreadPoolExecutor
        import os, subprocess, sys
        before = ThreadPoolExecutor(1).submit(number).result()
        child = subprocess.check_output([sys.executable, "-c", "import torch; print(torch.get_num_threads())"])
        print(before, number(), int(child), os.environ["OPENBLAS_NUM_THREADS"])
    """
    lines = "\n".join(line.strip() for line in program.splitlines())
    assert python("-c", lines, IDC_CONFIG=str(config)).split() == ["1", "1", "1", "1"]


@pytest.mark.parametrize(("config", "threads"), [("threads = 5", "5"), ('engine = "ray"', "1"), ("", None)])
def test_what_is_settled(tmp_path, monkeypatch, config, threads):
    path = tmp_path / "config.toml"
    path.write_text(f"[limits]\n{config}\n", encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(path))
    monkeypatch.setenv(_NUMBER, "")
    monkeypatch.delenv(_NUMBER)
    settle()
    assert os.environ.get(_NUMBER) == threads


def test_what_a_person_has_set_is_kept_and_told(tmp_path, monkeypatch, caplog):
    path = tmp_path / "config.toml"
    path.write_text("[limits]\nthreads = 5\n", encoding="utf-8")
    monkeypatch.setenv("IDC_CONFIG", str(path))
    monkeypatch.setenv(_NUMBER, "2")
    settle()
    assert os.environ[_NUMBER] == "2"
    assert "OMP_NUM_THREADS=2, not the 5 of the config file" in caplog.text


@pytest.fixture
def two_threads():
    """Two threads, as a program may ask torch for."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("two_threads")
def test_what_another_number_of_threads_has_computed_is_another_result():
    two = store.place("analysis", ("key",))
    with one_thread():
        one = store.place("analysis", ("key",))
    assert one != two == store.place("analysis", ("key",))


@pytest.mark.usefixtures("two_threads")
def test_one_thread_holds_for_a_block_and_for_matrix_products_too():
    with ThreadPoolExecutor(1) as other:
        assert (number(), other.submit(number).result()) == (2, 2)
        with one_thread():
            assert number() == 1
            assert "mkl_get_max_threads() : 2" not in torch.__config__.parallel_info()
            assert other.submit(number).result() == 2
        assert (number(), other.submit(number).result()) == (2, 2)


@pytest.mark.rare
def test_threads_that_begin_during_a_training_keep_their_number():
    """Each thread of Python takes the number that holds when it first computes, and keeps it."""
    program = """
        from concurrent.futures import ThreadPoolExecutor
        from idc_core.base.threads import number, one_thread
        both = number()
        with one_thread():
            print(number(), ThreadPoolExecutor(1).submit(number).result() == both)
    """
    lines = "\n".join(line[8:] for line in program.splitlines())
    assert python("-c", lines).split() == ["1", "True"]


def test_nothing_else_sets_threads():
    """A number that is set later holds in some threads of Python and not in others."""
    setting = ("set_num_threads", "omp_set_num", "threadpool_limits(")
    files = [path for package in ("idc_core", "studio", "pages") for path in (ROOT / package).rglob("*.py")]
    found = {path.name for path in files if any(word in path.read_text(encoding="utf-8") for word in setting)}
    assert found == {"threads.py"}
