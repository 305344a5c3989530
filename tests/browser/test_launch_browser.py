"""`idc.launch`: the dashboard in a person's own process, on a network and arrays that they hold there."""

import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest
import torch
from sklearn.datasets import load_wine
from streamlit import config as settings
from torch import nn

import idc_core as idc
from tests.browser.waiting import expect

ROOT = Path(__file__).parents[2]
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ENDS = """
import threading, time
import torch
import idc_core as idc
from studio.jobs.jobs import shelf
from studio.jobs.jobs import JobKind

arrays = torch.rand(20, 4), torch.arange(20) % 2
idc.launch(torch.nn.Sequential(torch.nn.Linear(4, 2)), train=arrays, test=arrays)

def work(report):
    while report(0, 1, "working"):
        time.sleep(0.05)
    raise ValueError("stopped")

job = shelf().job(JobKind("toy"), 1, work)

def a_page():
    while True:
        job.want() if job._wanted > 0 else None
        time.sleep(0.05)

threading.Thread(target=a_page, daemon=True).start()
print("the end")
"""


def net(inputs, outputs):
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))


@pytest.fixture(scope="module")
def wine():
    data = load_wine(as_frame=True)
    scaled = (data.data - data.data.mean()) / data.data.std()
    return (scaled[::2], data.target[::2]), (scaled[1::2], data.target[1::2])


@pytest.mark.slow
def test_a_page_shows_the_network_and_stop_ends_the_server(browser, wine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text('[server]\naddress = "0.0.0.0"\n')
    for name in ("_config_options", "_main_script_path"):
        monkeypatch.setattr(settings, name, None)
    assert settings.get_option("server.address") == "0.0.0.0"  # the program has other settings
    before, model, (train, test) = set(threading.enumerate()), net(13, 3), wine
    # Playwright's event loop runs in this thread, as Jupyter's does.
    dashboard = idc.launch(model, train=train, test=test)
    server = dashboard.url.partition("/?")[0]
    assert server.startswith("http://127.0.0.1:")
    assert DIRECT.open(f"{server}/_stcore/health").read() == b"ok"
    assert f'src="{dashboard.url}"' in dashboard._repr_html_()
    assert idc.launch(model, train=train, test=test) == dashboard
    other = idc.launch(nn.Sequential(nn.Flatten(), net(784, 10)), train="digits")
    assert other.url == f"{server}/?model=model-2"
    page = browser.new_page()
    try:
        page.goto(f"{server}/coverage?model=model")
        expect(page.locator('[data-testid="stMain"]')).to_contain_text("model · model-data · layer 0")
        page.goto(f"{server}/library")
        expect(page.locator('input[type="file"]')).to_have_count(1)  # nobody else reaches the server
    finally:
        page.close()
    dashboard.stop()
    dashboard.stop()
    left = {thread.name for thread in set(threading.enumerate()) - before if thread.is_alive()}
    assert not {name for name in left if "Script" in name or name == "idc-launch"}
    with pytest.raises(OSError, match="refused"):
        DIRECT.open(f"{server}/_stcore/health")
    again = idc.launch(model, train=train, test=test)
    assert DIRECT.open(again.url).status == 200
    again.stop()


@pytest.mark.slow
def test_the_program_ends_while_a_page_waits_for_work(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", ENDS],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "IDC_HOME": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (ended.stdout, ended.stderr, ended.returncode) == ("the end\n", "", 0)
