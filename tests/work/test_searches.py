"""A search by blocks of seeds: what one seed covers steers the others, whoever has them; workers that are replaced."""

from dataclasses import replace
from functools import cache, reduce
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.errors import CancelledError, DataError, SettingError
from idc_core.generation import differential_search, make_guidance
from idc_core.models import load_model
from idc_core.work import EXECUTORS, Here
from idc_core.work.local import ByBlocks
from idc_core.work.searches import search_seeds
from idc_core.work.source import Opener
from idc_core.work.tree import Tree
from tests.work.setups import (
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("constraint", ["blackout", "light", "linf", "occlusion"])
def test_the_pictures_are_those_of_one_process(constraint):
    settings = search_settings(constraint=constraint)
    with EXECUTORS["local"].open("") as engine:
        assert_searches_equal(searched(engine, settings), settings)


@pytest.mark.rare
@pytest.mark.parametrize("guide", ["idc", "kmnc"])
def test_so_they_are_with_a_guide(guide):
    settings, guides = search_settings(), guidance(guide)
    with EXECUTORS["local"].open("") as engine:
        assert_searches_equal(searched(engine, settings, guides), settings, guides)


@pytest.mark.rare
def test_the_others_steer_each_seed():
    settings = search_settings()
    with EXECUTORS["local"].open("") as engine:
        few, many = searched(engine, settings, count=16), searched(engine, settings, count=120)
    own = many.inputs[: (many.seed_index < 16).sum()]
    assert few.inputs.shape != own.shape or (few.inputs != own).any()


class Forgetful(ByBlocks):
    """Loses a part of what it has kept before every other run, as if workers had been replaced."""

    runs = lost = 0

    def run(self, *work, **options):
        self.runs += 1
        for block in list(self.left())[self.runs % 3 :: 3]:
            del self.left()[block]
            self.lost += 1
        return super().run(*work, **options)

    def left(self):
        """What a search has left, by block."""
        return self._open.kept.left.by_block if self._open.kept.word else {}


@pytest.mark.slow
def test_a_worker_that_takes_over_makes_the_steps_again():
    settings, engine = search_settings(), Forgetful()
    assert_searches_equal(searched(engine, settings), settings)
    assert engine.lost > 10
    assert not engine.left()


class Joined(ByBlocks):
    """Two workers take turns, of whom the second comes with the third step."""

    def __init__(self):
        super().__init__()
        self.openers, self.homes, self.runs = [self._open, Opener()], {}, 0

    def run(self, source, work, blocks, on_progress=None, *, moving=False):
        tree, turn, self.runs = Tree(len(blocks), self.homes, moving), 0, self.runs + bool(work.keeps)
        while not tree.finished:
            worker, turn = (turn % 2 if self.runs > 2 else 0), turn + 1
            node = tree.take(worker, {0, 1} if self.runs > 2 else {0})
            if node is not None and node.level:
                tree.done(node, reduce(lambda one, other: one.merge(other), tree.states(node)))
            elif node is not None:
                tree.done(node, work(self.openers[worker](source), blocks[node.index]))
                self.homes[node.index] = worker
        return tree.found[tree.top]


@pytest.mark.rare
@pytest.mark.parametrize(("iterations", "share"), [(8, 3), (4, 0)])
def test_a_worker_that_joins_has_its_share_while_the_search_is_young(iterations, share):
    settings, engine = search_settings(iterations=iterations, step=4.0), Joined()
    assert_searches_equal(searched(engine, settings, count=96), settings, count=96)
    assert sum(home == 1 for home in engine.homes.values()) == share


def test_progress_counts_steps_and_stop_is_heard_within_one():
    told = []
    with EXECUTORS["local"].open("") as engine:
        searched(engine, search_settings(), on_progress=lambda *now: told.append(now) or True)
        steps = [now[:2] for now in dict.fromkeys(told)]
        assert steps == [(taken, 5) for taken in range(6)]
        assert told[0][2] == "steps; 0 of 120 seeds done"
        told.clear()
        with pytest.raises(CancelledError):
            searched(engine, search_settings(), on_progress=lambda *now: told.append(now) or len(told) < 20)
    assert len(told) == 20
    assert 0 < told[-1][0] < 5


def test_in_one_piece_progress_counts_steps_and_stop_is_heard_too():
    settings, told = search_settings(), []
    with Here() as executor:
        found = searched(executor, settings, on_progress=lambda *now: told.append(now[:2]) or True)
        assert_searches_equal(found, settings)
        assert told == [(taken, 5) for taken in (0, 0, 1, 2, 3, 4, 5)]
        with pytest.raises(CancelledError):
            searched(executor, settings, on_progress=lambda taken, *_: taken < 2)


@pytest.mark.slow
def test_a_stopped_search_leaves_nothing_when_other_work_begins():
    engine = ByBlocks()
    with pytest.raises(CancelledError):
        searched(engine, search_settings(), on_progress=lambda taken, *_: taken < 2)
    assert engine._open.kept.left.by_block
    searched(engine, search_settings())
    assert not engine._open.kept.left.by_block


class Listened(ByBlocks):
    """Notes how many targets it is told with each step."""

    def __init__(self):
        super().__init__()
        self.told = []

    def run(self, source, work, *more, **options):
        if hasattr(work, "told"):
            assert work.source.live is None  # neither network nor data are sent
            self.told.append([sum(map(len, parts)) for step in work.told for parts in step])
        return super().run(source, work, *more, **options)


def test_each_step_is_told_what_is_new():
    engine, guides = Listened(), guidance("kmnc")
    live = replace(TEST, live=({network().card.name: network()}.__getitem__, load_dataset(DATA)))
    searched(engine, search_settings(), guides, source=live)
    assert len(engine.told) == 6
    assert all(sum(told) <= sum((~one.reached).sum() for one in guides) for told in engine.told)
    assert engine.told[-1][: len(engine.told[-2])] == engine.told[-2]
    assert engine.told[-1][-1] > 0


@cache
def small(name):
    """A network with so many outputs as its name begins with."""
    outputs, _, seed = name.partition("-")
    torch.manual_seed(int(seed))
    made = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 26 * 26, int(outputs)))
    made.card = SimpleNamespace(fingerprint=name)
    return made


def both_ways(names, guided=False, count=40, **changed):
    """Search with small networks on an engine and without one; return both results and the last progress."""
    models, told = [small(name) for name in names], []
    settings, seeds = search_settings(**changed), load_dataset(DATA, "test", count)
    guides = make_guidance("nc", models, seeds) if guided else None
    source = replace(TEST, model=names[0], open_model=small)
    with EXECUTORS["local"].open("") as engine:
        found = search_seeds(engine, source, names, models, np.arange(count), settings, guides, on_progress=tell(told))
    return found, differential_search(models, seeds, **vars(settings), guidance=guides), told[-1]


def tell(told):
    return lambda *now: told.append(now[:2])


def assert_same(found, expected):
    for name, value in vars(expected).items():
        if isinstance(value, np.ndarray):
            exact = name not in ("predictions", "seed_predictions") or value.dtype.kind == "i"
            np.testing.assert_allclose(getattr(found, name), value, rtol=0, atol=0 if exact else 1e-6, err_msg=name)


def test_a_search_without_steps_and_one_with_a_turn():
    found, expected, told = both_ways(("2-0", "2-1"), iterations=0)
    assert 0 < len(expected) < 40
    assert_same(found, expected)
    assert told == (0, 0)
    found, expected, _ = both_ways(("2-0", "2-1"), turn=1)
    assert_same(found, expected)


def test_regression_and_a_network_given_twice():
    found, expected, _ = both_ways(("1-0", "1-1", "1-0"), guided=True, bound=0.4, iterations=20)
    assert expected.predictions.dtype == np.float32
    assert 0 < len(expected) < 40
    assert_same(found, expected)


def test_two_networks_of_one_name_have_a_criterion_each():
    models, settings = [network(), load_model(SEARCHED[0])], search_settings(iterations=2)
    guides, seeds = make_guidance("nc", models, load_dataset(DATA, "test", 16)), load_dataset(DATA, "test", 40)
    with EXECUTORS["local"].open("") as engine:
        found = search_seeds(engine, TEST, SEARCHED[:1] * 2, models, np.arange(40), settings, guides)
    assert_same(found, differential_search(models, seeds, **vars(settings), guidance=guides))


def test_a_search_ends_when_every_seed_has_led_to_a_disagreement():
    found, expected, told = both_ways(("2-0", "2-1"), step=60.0, iterations=50)
    assert len(expected) == 40
    assert_same(found, expected)
    assert told == (expected.iterations.max(), 50)


def test_what_does_not_fit_is_refused():
    models, settings = [network(), companion()], search_settings()
    strangers = make_guidance("nc", [load_model("lenet4-digits")], None)
    with EXECUTORS["local"].open("") as engine:
        with pytest.raises(SettingError, match="at least two models"):
            search_seeds(engine, TEST, SEARCHED[:1], models[:1], np.arange(4), settings)
        with pytest.raises(DataError, match="has another network 'lenet4-digits'"):
            search_seeds(engine, TEST, (SEARCHED[0], "lenet4-digits"), models, np.arange(4), settings)
        with pytest.raises(DataError, match="at least one seed"):
            searched(engine, settings, count=0)
        with pytest.raises(SettingError, match="belongs to none of the models"):
            searched(engine, settings, strangers)
