"""The page of stories: charts become slides where they are shown, and slides are edited, passed on and read back."""

from types import SimpleNamespace

import pytest

from idc_core.stories.page_file import write_page
from idc_core.stories.story import STORIES, shipped
from studio.state import visitor
from studio.stories import editor


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def only():
    """The one story that is kept."""
    (story,) = STORIES.listed().values()
    return story


def test_a_chart_becomes_a_slide_with_its_state(open_page):
    app = open_page("clusters", layer="fc1", neuron="8", m="3")
    app.button(key="add-histograms").click().run()
    assert not app.exception
    assert "Slide 1 of" in app.toast[0].value
    (slide,) = only().slides
    assert slide.page == "clusters"
    assert slide.query == {"layer": "fc1", "neuron": "8", "m": "3"}
    assert slide.sentence == "Activations of the important neurons, and their clusters."
    assert "layer fc1 · m = 3" in slide.setup
    grounds = {theme: drawing["layout"]["paper_bgcolor"] for theme, drawing in slide.drawings.items()}
    assert grounds == {"light": "#ffffff", "dark": "#12161a"}
    gallery = next(button for button in app.button if button.key.startswith("tell-cluster-tests"))
    gallery.click().run()
    assert len(only().slides) == 2
    assert len(only().slides[1].drawings["light"]["layout"]["images"]) > 1


def test_slides_are_edited_and_a_file_brings_them_back(open_page, monkeypatch):
    app = open_page("stories")
    app.button(key="story-copy").click().run()
    app.text_input(key="story-title").set_value("Ours")
    app.text_area(key="sentence-0").set_value("One.").run()
    assert not app.exception
    (id,) = STORIES.listed()
    assert (only().title, only().slides[0].sentence) == ("Ours", "One.")

    state = {editor._DEED: SimpleNamespace(deed={"name": "move", "at": 0, "to": 1})}
    monkeypatch.setattr(editor.st, "session_state", state)
    monkeypatch.setattr(editor, "tell", lambda id: None)
    monkeypatch.setattr(editor.address, "keep", lambda name, value: None)
    monkeypatch.setattr(visitor, "owner", lambda: "")
    editor._take(id, 11)
    assert only().slides[1].sentence == "One."
    state[editor._DEED].deed = {"name": "delete", "at": 99, "to": 99}
    editor._take(id, 11)
    assert len(only().slides) == 11
    state[editor._DEED].deed = {"name": "delete", "at": 0, "to": 0}
    editor._take(id, 11)
    mine = only()
    assert len(mine.slides) == 10
    STORIES.delete(id)
    state[editor._FILE] = SimpleNamespace(name="ours.html", getvalue=lambda: write_page(mine))
    editor._import()
    assert only().slides == mine.slides
    state[editor._FILE] = SimpleNamespace(name="other.html", getvalue=lambda: b"<html></html>")
    editor._import()
    assert "holds no story" in state[editor._SAID]


def test_visitors_from_elsewhere_play_and_keep_nothing(open_page, monkeypatch):
    monkeypatch.setattr(visitor, "uploads_refused", lambda: "Uploads are switched off.")
    app = open_page("stories")
    assert {button.key for button in app.button} >= {"story-play", "story-play-here"}
    assert not [button for button in app.button if button.key in ("story-copy", "story-new")]
    assert shipped()["lesson"].title in app.selectbox[0].options[0]
    assert not [one for one in open_page("clusters").button if (one.key or "").startswith(("tell-", "add-"))]
