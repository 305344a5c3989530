"""Notes in the sidebar: written about what is selected, shown as plain text, opened, exported, deleted."""

import json

import pytest

from idc_core.base.config import config
from idc_core.store import notes
from studio.shell.notes import _table
from studio.state import visitor


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def write(app, text):
    app.text_area(key="note-text").set_value(text)
    app.button(key="note-keep").click().run()
    assert not app.exception
    return app


def test_a_note_is_about_what_is_selected_and_opens_it_again(open_page):
    app = open_page("clusters", input="3", neuron="8", cell="1-1-0-1-0-0", layer="fc1")
    assert app.selectbox(key="note-about").options == ["test 3", "neuron 8", "cell 1-1-0-1-0-0"]
    app.selectbox(key="note-about").set_value("neuron")
    write(app, "# Fires for *loops* <script>")
    (one,) = notes.kept_notes()
    assert (one.subject, one.place) == ("neuron 8", {"layer": "fc1", "neuron": "8"})
    assert [text.value for text in app.text] == ["# Fires for *loops* <script>"]
    assert app.text_area(key="note-text").value == ""
    other = open_page("clusters", input="5")
    other.button(key=f"note-open-{one.name}").click().run()
    assert not other.exception
    assert [text.value for text in other.sidebar.markdown][1:2] == ["neuron 8"]
    assert other.selectbox(key="layer").value == "fc1"
    assert [title.value for title in other.title] == ["Which neurons decide, and do they really?"]


def test_a_pair_of_classes_has_notes(open_page):
    app = write(open_page("clusters", pair="3-5"), "Close in fc2")
    (one,) = notes.kept_notes()
    assert (one.subject, one.place) == ("classes 3 and 5", {"pair": "3-5"})
    assert not open_page("clusters", pair="3-99").text_area
    app.button(key=f"note-delete-{one.name}").click().run()
    assert notes.kept_notes() == []


def test_nothing_is_written_where_nothing_is_selected_or_the_text_is_empty(open_page):
    assert not open_page("clusters").text_area
    app = write(open_page("clusters", input="3"), " ")
    assert "A note needs a text." in [error.value for error in app.error]
    assert notes.kept_notes() == []


def test_visitors_from_elsewhere_read_and_write_no_notes_and_delete_none(open_page, monkeypatch):
    one = notes.write_note("Mine", "test 3", "LeNet-5", {"input": "3"}, owner="another")
    monkeypatch.setattr(visitor, "uploads_refused", lambda: "Uploads are switched off.")
    app = open_page("clusters", input="3")
    assert [text.value for text in app.text] == ["Mine"]
    assert not app.text_area
    assert not any(button.key == f"note-delete-{one.name}" for button in app.button)
    assert config().uploads == "loopback"


def test_a_damaged_note_is_named_and_the_table_has_no_formulas(open_page):
    one = notes.write_note("=1+1", "test 3", "LeNet-5", {"input": "3"})
    assert _table([one]).splitlines()[1].split(",")[3] == "'=1+1"
    notes.NOTES.path(one.name).write_text("{}")
    app = open_page("clusters")
    assert not app.exception
    assert any(one.name in caption.value.replace("\\", "") for caption in app.caption)
    app.button(key=f"note-delete-{one.name}").click().run()
    assert not list(notes.NOTES.folder.iterdir())


def test_a_cluster_is_named_on_its_page_and_on_the_grid(open_page):
    app = open_page("clusters", neuron="18")
    app.text_input(key="cluster-name-18-1").set_value("loop *below*").run()
    assert not app.exception
    (one,) = notes.kept_notes()
    assert (one.subject, one.text, one.names) == ("cluster 1 of neuron 18", "loop *below*", True)
    # It does not depend on the tests or on m.
    app = open_page("coverage", neuron="18", cell="1-0-0-0", m="4")
    (grid,) = [json.loads(chart.proto.spec) for chart in app.get("echarts_chart")]
    assert grid["yAxis"][-1]["data"] == ["0", "loop *below*"]
    assert "loop \\*below\\*" in [text.value for text in app.markdown]
    assert app.text_input(key="cluster-name-18-1").value == "loop *below*"
    assert app.selectbox(key="fix-0").options == ["any", "0 (lowest)", "1 (loop *below*)"]
    app.text_input(key="cluster-name-18-1").set_value("").run()
    assert notes.kept_notes() == []
