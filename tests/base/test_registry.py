"""Every registry answers an unknown name with the names that it has."""

from dataclasses import dataclass
from pathlib import Path
from runpy import run_path

import pytest

from idc_core.attribution.methods import METHODS
from idc_core.base.registry import Registry, lazy
from idc_core.clustering.methods import CLUSTERINGS
from idc_core.coverage import CRITERIA
from idc_core.errors import SettingError
from idc_core.generation import CONSTRAINTS, SEEDS
from idc_core.generation.objectives import OBJECTIVES
from idc_core.importance.important_neurons import PRIORITIES
from idc_core.suites import SUITES


def test_an_unknown_name_is_answered_with_the_names_there_are() -> None:
    fruits = Registry("fruit", {"apple": 1})
    fruits["pear"] = 2
    assert fruits["pear"] == 2
    assert list(fruits) == ["apple", "pear"]
    with pytest.raises(SettingError, match="Unknown fruit 'plum': expected one of apple, pear"):
        fruits["plum"]
    assert "plum" not in fruits  # asking adds nothing


def test_an_entry_that_was_taken_out_leaves_its_name_to_any_file(tmp_path: Path) -> None:
    fruits = Registry("fruit")
    for name in ("first.py", "second.py"):
        file = tmp_path / name
        file.write_text("def enter(fruits, entry):\n    fruits.enter('own', entry)\n")
        enter = run_path(str(file))["enter"]
        for entry in (1, 2):  # a file that is read again replaces its own
            enter(fruits, entry)
        assert fruits["own"] == 2
        assert fruits.has_of(str(file))
        del fruits["own"]


def test_a_field_that_was_not_given_is_found_once() -> None:
    asked = []

    @dataclass(frozen=True)
    class Fruit:
        name: str
        colour: str = lazy(lambda fruit: asked.append(fruit.name) or "green")

    pear, cherry = Fruit("pear"), Fruit("cherry", "red")
    assert [pear.colour, pear.colour, cherry.colour] == ["green", "green", "red"]
    assert asked == ["pear"]


@pytest.mark.parametrize(
    ("registry", "what"),
    [
        (METHODS, "attribution method"),
        (CLUSTERINGS, "clustering"),
        (CRITERIA, "coverage criterion"),
        (CONSTRAINTS, "constraint"),
        (OBJECTIVES, "objective"),
        (SEEDS, "way to choose seeds"),
        (PRIORITIES, "priority"),
        (SUITES, "kind of suite"),
    ],
)
def test_registries_name_what_is_unknown(registry: Registry[object], what: str) -> None:
    with pytest.raises(SettingError, match=f"Unknown {what} 'nowhere': expected one of {next(iter(registry))}"):
        registry["nowhere"]
