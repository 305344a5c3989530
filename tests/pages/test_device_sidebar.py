"""Where the network runs, in the sidebar: nothing where there is no choice, and what is chosen reaches the network."""

from idc_core.base import devices
from studio.jobs import results


def test_where_there_is_one_device_nothing_is_shown(open_page, monkeypatch):
    monkeypatch.setattr(devices, "available", lambda: ("cpu",))
    page = open_page("coverage", device="cuda:0")
    assert not page.exception
    assert "Device" not in [box.label for box in page.sidebar.selectbox]


def test_the_network_is_opened_on_the_chosen_device(open_page, monkeypatch):
    monkeypatch.setattr(devices, "available", lambda: ("cpu", "cuda:0"))
    opened, load = [], results._load_model
    monkeypatch.setattr(results, "_load_model", lambda name, where: opened.append(where) or load(name, "cpu"))
    page = open_page("coverage")
    (box,) = [box for box in page.sidebar.selectbox if box.label == "Device"]
    assert (box.value, box.options) == ("cpu", ["cpu", "cuda:0"])
    before = page.session_state["kept-device"]
    box.select("cuda:0").run()
    assert not page.exception
    assert (before, page.query_params["device"]) == ("", "cuda:0")
    page.sidebar.selectbox(key="layer").select("fc1").run()
    assert not page.exception
    assert opened[-1] == "cuda:0"
