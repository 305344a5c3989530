"""Feature vectors as bars and time series as lines, beside their relevance."""

import numpy as np
import pytest

from idc_core.errors import SettingError
from idc_core.figures.input_images import lines
from idc_core.figures.vectors import MOST, feature_bars, series_lines, standardised

LIKE = np.array([[0.0, 5, 10], [2, 5, 30]])
VALUES = np.array([3.0, 5, 20])
RELEVANCE = np.array([0.5, -2.0, 0.0])


def test_values_are_drawn_in_deviations_from_the_mean():
    assert standardised(VALUES, LIKE).tolist() == [2, 0, 0]


def test_the_most_relevant_feature_is_on_top_with_its_numbers():
    figure = feature_bars(["a", "b", "c"], VALUES, LIKE, [("first", RELEVANCE), ("second", -RELEVANCE)], "title")
    value, supports, against, *second = figure.data
    assert list(value.y) == ["c", "a", "b"]
    assert list(value.x) == [0, 2, 0]
    assert list(value.text) == ["20", "3", "5"]
    assert (list(supports.x), list(supports.text)) == ([0, 0.5, 0], ["", "+0.5", ""])
    assert (list(against.x)[2], list(against.text)[2]) == (-2, "\u22122")
    assert against.marker.pattern.shape == "/"
    assert [trace.showlegend for trace in (supports, against, *second)] == [True, True, False, False]


def test_many_features_and_equal_names():
    many = np.arange(100.0)
    figure = feature_bars(["x"] * 100, many, np.ones((2, 100)), [("first", many)], "title")
    assert len(set(figure.data[0].y)) == MOST
    assert figure.data[0].y[-1] == "x (99)"
    with pytest.raises(SettingError, match="got 2 names and 100 relevances"):
        feature_bars(["x", "y"], many, np.ones((2, 100)), [("first", many)], "title")


def test_a_series_has_a_line_per_channel_and_a_bar_per_step():
    series = np.arange(8.0).reshape(2, 4)
    figure = series_lines(series, [("first", np.array([1.0, -1, 0, 2]))], "title")
    assert [trace.type for trace in figure.data] == ["scatter", "scatter", "bar", "bar"]
    assert list(figure.data[1].y) == [4, 5, 6, 7]
    assert list(figure.data[3].y) == [0, -1, 0, 0]
    with pytest.raises(SettingError, match="a relevance for each step"):
        series_lines(series, [("first", np.ones(3))], "title")


def test_a_small_picture_of_a_series():
    series = np.zeros((1, 1, 2))
    series[0, 0, 1] = 1
    plain = lines(series)
    assert plain.shape == (1, 56, 112, 3)
    assert (plain[0, 0] == 255).all()
    assert (plain < 100).any()
    coloured = lines(series, np.array([[[1.0, -1.0]]]))[0, 0].astype(int)
    assert (coloured[:56, 0] > coloured[:56, 2]).all(), "red, for"
    assert (coloured[56:, 2] > coloured[56:, 0]).all(), "blue, against"
    with pytest.raises(SettingError, match="channels, steps"):
        lines(series[0])
