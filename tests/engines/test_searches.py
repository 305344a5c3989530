"""A search by blocks of seeds: what one seed covers steers the others, whoever has them; workers that are replaced."""

import numpy as np
import pytest

from idc_core.engines import ENGINES
from idc_core.engines.local import LocalEngine
from idc_core.engines.searches import search_on
from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.generation import make_guidance
from idc_core.models import load_model
from tests.engines.setups import (
    DATA,
    SEARCHED,
    TEST,
    assert_searches_equal,
    companion,
    load_dataset,
    network,
    search_settings,
    searched,
)


def guidance(name):
    train, test = load_dataset(DATA, "train", 300), load_dataset(DATA, "test", 50)
    return make_guidance(name, [network(), companion()], train, test, m=3)


@pytest.mark.parametrize("constraint", ["blackout", "light", "linf", "occlusion"])
def test_the_pictures_are_those_of_one_process(constraint):
    settings = search_settings(constraint=constraint)
    with ENGINES["local"].open("") as engine:
        assert_searches_equal(searched(engine, settings), settings)


@pytest.mark.parametrize("guide", ["idc", "kmnc"])
def test_so_they_are_with_a_guide(guide):
    settings, guides = search_settings(), guidance(guide)
    with ENGINES["local"].open("") as engine:
        assert_searches_equal(searched(engine, settings, guides), settings, guides)


def test_the_others_steer_each_seed():
    settings = search_settings()
    with ENGINES["local"].open("") as engine:
        few, many = searched(engine, settings, count=16), searched(engine, settings, count=120)
    own = many.inputs[: (many.seed_index < 16).sum()]
    assert few.inputs.shape != own.shape or (few.inputs != own).any()


class Forgetful(LocalEngine):
    """Loses a part of what it has kept before every other run, as if workers had been replaced."""

    runs = lost = 0

    def run(self, source, *work):
        self.runs += 1
        kept = self._open(source).kept
        for key in [one for one in kept if isinstance(one, tuple)][self.runs % 3 :: 3]:
            del kept[key]
            self.lost += 1
        return super().run(source, *work)


def test_a_worker_that_takes_over_makes_the_steps_again():
    settings, engine = search_settings(), Forgetful()
    assert_searches_equal(searched(engine, settings), settings)
    assert engine.lost > 10
    assert not [one for one in engine._open(TEST).kept if isinstance(one, tuple)]


def test_progress_counts_steps_and_stop_is_heard_within_one():
    told = []
    with ENGINES["local"].open("") as engine:
        searched(engine, search_settings(), on_progress=lambda *now: told.append(now) or True)
        steps = [now[:2] for now in dict.fromkeys(told)]
        assert steps == [(taken, 5) for taken in range(5)]
        assert told[0][2] == "steps; 0 of 120 seeds done"
        told.clear()
        with pytest.raises(CancelledError):
            searched(engine, search_settings(), on_progress=lambda *now: told.append(now) or len(told) < 20)
    assert len(told) == 20
    assert 0 < told[-1][0] < 5


def test_what_does_not_fit_is_refused():
    models, settings = [network(), companion()], search_settings()
    strangers = make_guidance("nc", [load_model("lenet4-digits")], None)
    with ENGINES["local"].open("") as engine:
        with pytest.raises(SettingError, match="at least two models"):
            search_on(engine, TEST, SEARCHED[:1], models[:1], np.arange(4), settings)
        with pytest.raises(DataError, match="has another network 'lenet4-digits'"):
            search_on(engine, TEST, (SEARCHED[0], "lenet4-digits"), models, np.arange(4), settings)
        with pytest.raises(DataError, match="at least one seed"):
            searched(engine, settings, count=0)
        with pytest.raises(SettingError, match="belongs to none of the models"):
            searched(engine, settings, strangers)
