"""The Worth tab of the Criteria page: the kept records' rows, and the finding as its title."""

import json

import pytest

from idc_core.worth import telling
from idc_core.worth.pooling import selected, yardsticks_of
from idc_core.worth.published import published


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
