"""Options of methods are declared once: a command takes them by the names, ranges and defaults of their fields."""

import argparse

import pytest

from idc_core.base.ranges import INSPECT, SEARCH, InspectOptions
from idc_core.cli import confusion, differential, inspect
from idc_core.cli.arguments import Parser
from idc_core.cli.options import options_of
from idc_core.errors import SettingError
from idc_core.generation.ascent import AscentSettings
from idc_core.runs import CLASS_ERRORS, ErrorSettings
from studio.differential.search import SearchSettings

METHODS = [
    (differential, SEARCH, AscentSettings(), []),
    (inspect, INSPECT, InspectOptions(), ["lenet5-digits"]),
    (confusion, CLASS_ERRORS, ErrorSettings(), []),
]


def parser_of(command):
    parser = argparse.ArgumentParser()
    subparsers = parser.add_subparsers(parser_class=Parser)
    command.add_parser(subparsers)
    return subparsers.choices[command.__name__.rpartition(".")[2]]


@pytest.mark.parametrize(
    ("command", "options", "usual", "needed"), METHODS, ids=lambda one: getattr(one, "__name__", "")
)
def test_a_command_takes_every_option(command, options, usual, needed):
    parser = parser_of(command)
    asked = [one for one in options if one.help]
    assert options_of(parser.parse_args(needed), options) == {one.name: getattr(usual, one.name) for one in asked}
    for one in asked:
        flag, value = [one.flag], not one.default
        if not isinstance(one.default, bool):
            value = "scores" if one.parameter is None else one.parameter.high
            flag.append(str(value))
        assert options_of(parser.parse_args([*needed, *flag]), options)[one.name] == value
        if one.parameter is not None and len(flag) > 1:
            with pytest.raises(SettingError, match=one.flag):
                parser.parse_args([*needed, one.flag, str(one.parameter.high + 1)])


def test_a_page_searches_by_the_same_options():
    assert SearchSettings(()).options == AscentSettings().options
    assert all(
        one.parameter.low <= one.slider[0] <= one.default <= one.slider[1] <= one.parameter.high
        for one in (*SEARCH, *CLASS_ERRORS)
        if one.key and not isinstance(one.default, bool)
    )
