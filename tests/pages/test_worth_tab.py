"""The Worth tab of the Criteria page: the kept records' rows, and the finding as its title."""

import json

import pytest

from idc_core.worth import telling
from idc_core.worth.pooling import added, selected, yardsticks_of
from idc_core.worth.published import published
from studio.criteria import worth_rows


def test_the_tab_shows_the_kept_rows(open_page):
    records = published()
    yardstick = telling.headline(records)
    app = open_page("criteria", tab="worth")
    assert not app.exception
    rows = selected(records, yardstick, -1)
    shown = app.dataframe[0].value
    assert list(shown["ranking"]) == [telling.label(row.ranking) for row in rows]
    assert shown["found"].tolist() == pytest.approx([row.found for row in rows])
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert (
        figure["layout"]["title"]["text"]
        .replace("<br>", " ")
        .startswith(f"Share of the {yardstick} that tests selected by IDC find")
    )
    other = yardsticks_of(records)[-1]
    app = open_page("criteria", tab="worth", yardstick=other)
    rows = selected(records, other, -1)
    assert app.dataframe[0].value["difference"].tolist() == pytest.approx([row.more.value for row in rows])


def test_one_network_has_no_interval(open_page, monkeypatch):
    records = published()
    name = "lenet1-digits"
    monkeypatch.setattr("studio.criteria.worth_rows.published", lambda: {name: records[name]})
    worth_rows._records.clear()
    app = open_page("criteria", tab="worth", yardstick="kinds of mistakes")
    worth_rows._records.clear()
    assert not app.exception
    shown = app.dataframe[0].value
    assert shown[["low", "high", "p, Holm"]].isna().all(axis=None)
    figure = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert not any("(" in text for text in figure["data"][0]["text"])


def test_what_corrupted_tests_add_is_listed(open_page):
    records = published()
    rows = added(records)
    app = open_page("criteria", tab="worth")
    shown = app.dataframe[2].value
    assert list(shown["criterion"]) == [telling.label(row.criterion) for row in rows]
    assert shown["refused, 5 (%)"].tolist() == pytest.approx([100 * row.invalid["5"] for row in rows])
    assert any("as the same tests do as they are" in text.value for text in app.markdown)
