"""Stories: slides in their order, drawings for a room, files that return as they went and bring nothing else in."""

import json
from dataclasses import asdict, replace

import numpy as np
import plotly.graph_objects as go
import pytest

from idc_core.errors import DataError, SettingError
from idc_core.figures.learn import network
from idc_core.figures.picture_figure import picture_figure, text_figure
from idc_core.stories import page_file, story
from idc_core.stories.drawing import SMALLEST, check, large, small
from idc_core.stories.story import STORIES, THEMES, Slide, Story


@pytest.fixture(autouse=True)
def home(monkeypatch, tmp_path):
    monkeypatch.setenv("IDC_HOME", str(tmp_path))


def figure():
    layout = {"title": {"text": "Gone"}, "height": 300, "xaxis": {"tickfont": {"size": 11}}, "template": "plotly"}
    return go.Figure(go.Bar(x=np.array([0.123456789, np.nan]), y=["a", "b"], textfont={"size": [8, 30]}), layout)


def told(*sentences):
    drawings = dict.fromkeys(THEMES, large(figure()))
    return Story("Mine", tuple(Slide(said, "clusters", {"m": "3"}, "LeNet", drawings) for said in sentences))


def sizes(part):
    """All sizes of writing in a drawing."""
    if isinstance(part, dict):
        for name, one in part.items():
            if "font" in name and "size" in one:
                yield from one["size"] if isinstance(one["size"], list) else [one["size"]]
            yield from sizes(one)
    elif isinstance(part, list):
        for one in part:
            yield from sizes(one)


def test_a_drawing_is_large_without_its_title_and_plain():
    drawing = large(figure())
    assert "title" not in drawing["layout"]
    assert not {"height", "template"} & drawing["layout"].keys()
    assert json.loads(json.dumps(drawing)) == drawing
    assert drawing["data"][0]["x"] == [0.123457, None]
    assert min(sizes(drawing)) == SMALLEST
    assert max(sizes(drawing)) == 38
    assert min(sizes(small(drawing))) == 11
    check(drawing, "It")
    assert large(go.Figure())["layout"]["font"]["size"] >= SMALLEST


def test_pictures_texts_and_the_small_network_are_drawings():
    from idc_core.analysis.teaching import START, START_INPUTS

    pictures = [np.zeros((8, 8, 3), np.uint8), np.ones((4, 8, 4), np.uint8)]
    for drawn in (
        picture_figure(pictures, ["1: a \u2192 <b>", "2"], "T", dark=True),
        text_figure([("1: a", [("word", "for"), ("<i>", "against"), ("plain", "")] * 40)], "T", dark=False),
        network(START, START_INPUTS, "T", relevance=True, dark=False),
    ):
        drawing = large(drawn)
        check(drawing, "It")
        assert min(sizes(drawing)) >= SMALLEST
    assert "&lt;b&gt;" in json.dumps(large(picture_figure(pictures, ["<b>", ""], "T", dark=True)))


def test_slides_are_moved_said_and_deleted():
    mine = told("A.", "B.", "C.")
    said = lambda one: [slide.sentence for slide in one.slides]  # noqa: E731
    assert said(mine.moved(0, 2)) == ["B.", "C.", "A."]
    assert said(mine.moved(2, 0)) == ["C.", "A.", "B."]
    assert said(mine.without(1)) == ["A.", "C."]
    assert said(mine.said(1, " two\nlines ")) == ["A.", "two lines", "C."]
    for wrong in (" ", "x" * (story.LONGEST + 1)):
        with pytest.raises(SettingError, match="1 to 300 characters"):
            mine.said(0, wrong)
    with pytest.raises(SettingError, match="title"):
        mine.titled("")


def test_stories_are_kept_found_and_deleted_by_whoever_may():
    id = story.new_story(told("A."), "ann")
    assert story.find_story(id, "ann").slides == told("A.").slides
    for refused in (lambda: story.find_story(id, "bob"), lambda: STORIES.delete(id, "bob")):
        with pytest.raises(SettingError, match="There is no story"):
            refused()
    story.keep_story(id, story.find_story(id, "ann").shared_with_all(True))
    assert story.find_story(id, "bob").title == "Mine"
    with pytest.raises(SettingError, match="somebody else's"):
        STORIES.own(id, "bob")
    STORIES.delete(id, "ann")
    assert STORIES.listed() == {}


def test_a_story_has_limits(monkeypatch):
    with pytest.raises(SettingError, match="at most 60 slides"):
        story.new_story(Story("Mine", told("A.").slides * 61))
    monkeypatch.setattr(story, "_MOST_CHART", 100)
    with pytest.raises(SettingError, match="MiB"):
        story.new_story(told("A."))
    monkeypatch.setattr(story, "_MOST", 0)
    with pytest.raises(SettingError, match="limit for one person"):
        story.new_story(Story("Mine"))


def test_a_page_needs_no_network_and_returns_what_it_holds():
    mine = replace(told("</script><b>A & B.", "B."), owner="ann", shared=True, made="2026")
    page = page_file.write_page(mine)
    assert page == page_file.write_page(mine)
    text = page.decode()
    assert text.count("<script") == text.count("</script>") == 3
    assert "default-src 'none'" in text
    assert "<b>A" not in text
    assert page_file.read_page(page, "mine.html") == replace(mine, owner="", shared=False, made="")


def hostile(**layout):
    return {"data": [], "layout": layout}


@pytest.mark.parametrize(
    "drawing",
    [
        {"data": [{"type": "scattermapbox"}], "layout": {}},
        {"data": [], "layout": {}, "frames": []},
        {"data": {}, "layout": {}},
        hostile(images=[{"source": "https://elsewhere.example/a.png"}]),
        hostile(images=[{"source": "data:image/svg+xml;base64,AAAA"}]),
        hostile(annotations=[{"text": '<a href="https://elsewhere.example">here</a>'}]),
        hostile(annotations=[{"text": '<span style="fill:url(https://elsewhere.example)">x</span>'}]),
        hostile(updatemenus=[{}]),
        hostile(xaxis={"nonsense": 1}),
        hostile(margin="wide"),
        hostile(font={"size": 10**400}),
        hostile(font={"size": 1e9}),
        hostile(xaxis={"range": [0, 10**301]}),
        {"data": [{"type": "scatter", "y": [1], "textfont": {"size": [12, 10**400]}}], "layout": {}},
        {"data": [{"type": "scatter", "y": [-(10**400)]}], "layout": {}},
        hostile(**{f"xaxis{number}": {} for number in range(2, 6_000)}),
        hostile(annotations=[{"text": "a"}] * 6_000),
    ],
    ids=lambda drawing: str(drawing)[:60],
)
def test_what_is_no_drawing_is_refused(drawing):
    content = asdict(Story("Mine", (Slide("A.", drawings=dict.fromkeys(THEMES, drawing)),)))
    with pytest.raises(DataError, match="The file has a chart"):
        story.read_story(json.dumps(content).encode(), "The file")


@pytest.mark.parametrize(
    "change",
    [
        {"title": ""},
        {"slides": [{"sentence": "two\nlines"}]},
        {"slides": [{"sentence": "A.", "drawings": {"light": {"data": [], "layout": {}}}}]},
        {"slides": [{"sentence": "A."}] * 61},
        {"slides": [{"sentence": 3}]},
    ],
    ids=str,
)
def test_what_is_no_story_is_refused(change):
    content = json.dumps(asdict(Story("Mine")) | change).encode()
    with pytest.raises(DataError, match="The file"):
        story.read_story(content, "The file")


def test_files_without_a_story_are_refused():
    for content in (b"", b"<html></html>", page_file._BEGIN.encode() + b"{}"):
        with pytest.raises(DataError, match="holds no story"):
            page_file.read_page(content, "a.html")
    with pytest.raises(DataError, match="at most"):
        page_file.read_page(bytes(page_file.MOST_PAGE + 1), "a.html")


def test_the_shipped_stories_pass_their_own_checks():
    assert list(story.shipped()) == ["lesson", "examined"]
    for name, shipped in story.shipped().items():
        assert story.read_story(story.story_json(shipped).encode(), name) == shipped
        assert all(min(sizes(drawing)) >= SMALLEST for slide in shipped.slides for drawing in slide.drawings.values())
