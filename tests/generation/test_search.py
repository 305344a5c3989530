"""Differential search: the same as a slow loop, valid pictures at every step, clear answers where nothing is found."""

import numpy as np
import pytest
import torch
from torch import nn

from idc_core.coverage import CRITERIA
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.generation import CONSTRAINTS, OBJECTIVES, differential_search
from idc_core.generation.ascent import JointAscent
from idc_core.generation.guidance import make_guide
from idc_core.generation.objectives import SearchedNetwork


def network(variant, outputs=4):
    """Networks for one task: the same random weights, each variant off by a little noise of its own."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 6, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(6 * 25, 12),
        nn.ReLU(),
        nn.Linear(12, outputs),
    ).eval()
    torch.manual_seed(1 + variant)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2).add_(0.3 * parameter.abs().mean() * torch.randn(parameter.shape))
        model[6].bias.sub_(model(some_pictures(500)).mean(0))
    return model


def some_pictures(count):
    """Pictures of 8 bits: a few large shades each."""
    coarse = torch.rand(count, 1, 3, 3, generator=torch.Generator().manual_seed(1))
    return torch.round(coarse.repeat_interleave(4, 2).repeat_interleave(4, 3) * 255) / 255


def agreeing_seeds(models, count=24):
    """Pictures on which the models agree; from others a search would end at once."""
    pictures = some_pictures(2000)
    with torch.no_grad():
        answers = torch.stack([model(pictures).argmax(1) for model in models], 1)
    return pictures[(answers == answers[:, :1]).all(1)][:count].numpy()


@pytest.fixture(scope="module")
def models():
    return [network(seed) for seed in (0, 1, 2)]


@pytest.fixture(scope="module")
def seeds(models):
    found = agreeing_seeds(models)
    assert len(found) == 24
    return found


SMALL = {"occlusion": {"height": 4, "width": 5}, "blackout": {"height": 3, "width": 3}}


def rule(name):
    return CONSTRAINTS[name](**SMALL.get(name, {}))


def slow_light(models, seed, turned, step, iterations, safe=2.0):
    """One seed, one brightness, straight from the description: no batches, no state but two numbers."""
    x = torch.tensor(seed)[None]
    with torch.no_grad():
        label = int(models[0](x).argmax())
    brightness, way = 0.0, 0
    for taken in range(1, iterations + 1):
        if not way:
            offset = torch.zeros(1, requires_grad=True)
            total = torch.zeros(())
            for number, model in enumerate(models):
                scores = model((x + offset).clamp(0, 1))[0]
                lead = scores[label] - max(scores[k] for k in range(len(scores)) if k != label)
                total = total - lead if number == turned else total + min(lead, torch.tensor(safe)) / (len(models) - 1)
            total.backward()
            way = -1 if offset.grad < 0 else 1
        if abs(brightness) >= 1:
            brightness, way = 0.0, -way
        brightness = float(np.clip(brightness + way * step / 255, -1, 1))
        picture = torch.round((x + brightness).clamp(0, 1) * 255) / 255
        with torch.no_grad():
            answers = [int(model(picture).argmax()) for model in models]
        if len(set(answers)) > 1:
            return taken, picture[0].numpy(), answers
    return None


def test_batch_gives_what_a_slow_loop_gives(models, seeds):
    found = differential_search(models, seeds, weight_coverage=0, step=7.0, iterations=40, seed=3)
    slow = [slow_light(models, seed, found.turned[i], 7.0, 40) for i, seed in enumerate(seeds)]
    expected = [i for i, found in enumerate(slow) if found]
    assert len(expected) > 3
    assert found.seed_index.tolist() == expected
    for row, position in enumerate(expected):
        taken, picture, answers = slow[position]
        assert found.iterations[row] == taken
        np.testing.assert_array_equal(found.inputs[row], picture)
        assert found.predictions[row].tolist() == answers


def slow_ball(models, seed, turned, step, iterations, epsilon):
    """One seed inside an L-inf ball, the paper's objective."""
    x = torch.tensor(seed)[None]
    with torch.no_grad():
        label = int(models[0](x).argmax())
    change = torch.zeros_like(x)
    for taken in range(1, iterations + 1):
        picture = torch.round(x * 255 + torch.trunc(((x + change).clamp(0, 1) - x) * 255)) / 255
        picture.requires_grad_()
        total = sum((-1 if k == turned else 1) * model(picture)[0, label] for k, model in enumerate(models))
        (up,) = torch.autograd.grad(total, picture)
        now = x + change
        up = up * ~(((now <= 0) & (up < 0)) | ((now >= 1) & (up > 0)))
        up = up / up[up != 0].square().mean().sqrt()
        change = ((now + step / 255 * up).clamp(0, 1) - x).clamp(-epsilon, epsilon)
        picture = torch.round(x * 255 + torch.trunc(((x + change).clamp(0, 1) - x) * 255)) / 255
        with torch.no_grad():
            answers = [int(model(picture).argmax()) for model in models]
        if len(set(answers)) > 1:
            return taken, picture[0].numpy()
    return None


def test_ball_gives_what_a_slow_loop_gives(models, seeds):
    found = differential_search(
        models, seeds, CONSTRAINTS["linf"](epsilon=0.2), weight_coverage=0, iterations=15, objective="scores", turn=1
    )
    slow = [slow_ball(models, seed, 1, 10.0, 15, 0.2) for seed in seeds]
    expected = [i for i, found in enumerate(slow) if found]
    assert len(expected) > 3
    assert found.seed_index.tolist() == expected
    assert found.iterations.tolist() == [slow[i][0] for i in expected]
    for row, position in enumerate(expected):
        # Sums in another order can tip a value over a rounding edge, by one grey level.
        assert np.abs(found.inputs[row] - slow[position][1]).max() <= 1.01 / 255


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_every_picture_looked_at_is_valid(name, models, seeds, monkeypatch):
    looked_at = []
    keep = JointAscent._keep

    def watch(self, pictures, answers):
        looked_at.append(pictures.clone())
        return keep(self, pictures, answers)

    monkeypatch.setattr(JointAscent, "_keep", watch)
    found = differential_search(models, seeds, rule(name), step=40.0, iterations=6)
    assert len(looked_at) > 1
    for pictures in looked_at:
        assert pictures.min() >= 0
        assert pictures.max() <= 1
        np.testing.assert_allclose(pictures * 255, torch.round(pictures * 255), atol=1e-4)
    with torch.no_grad():
        bytes_ = np.round(found.inputs * 255).astype(np.uint8)
        again = torch.tensor(bytes_ / np.float32(255))
        answers = torch.stack([model(again).argmax(1) for model in models], 1).numpy()
    np.testing.assert_array_equal(found.predictions, answers)
    assert (answers != answers[:, :1]).any(1).all()


def test_disagreements_do_not_depend_on_the_cut(models, seeds):
    whole = differential_search(models, seeds, "l2", iterations=10, seed=5)
    cut = differential_search(models, seeds, "l2", iterations=10, seed=5, batch_size=7)
    assert len(whole) > 0
    np.testing.assert_array_equal(whole.seed_index, cut.seed_index)
    np.testing.assert_array_equal(whole.iterations, cut.iterations)
    assert np.abs(whole.inputs - cut.inputs).max() <= 1.01 / 255


def test_same_seed_same_disagreements(models, seeds):
    one, two = (differential_search(models, seeds, "linf", iterations=5, seed=9) for _ in range(2))
    np.testing.assert_array_equal(one.inputs, two.inputs)
    other = differential_search(models, seeds, "linf", iterations=5, seed=10)
    assert (other.turned != one.turned).any()


def test_models_that_agree_everywhere(seeds):
    model = network(0)
    found = differential_search([model, model], seeds, iterations=4)
    assert len(found) == 0
    assert found.inputs.shape == (0, 1, 12, 12)
    assert found.predictions.shape == (0, 2)
    assert found.message.startswith("No difference found")


def test_seeds_on_which_models_differ_already_do_not_count_as_found(models, seeds):
    pictures = some_pictures(2000)
    with torch.no_grad():
        answers = torch.stack([model(pictures).argmax(1) for model in models], 1)
    apart = pictures[(answers != answers[:, :1]).any(1)][:5].numpy()
    mixed = differential_search(models, np.concatenate([apart, seeds]), "linf", iterations=3)
    taken = dict(zip(mixed.seed_index.tolist(), mixed.iterations.tolist(), strict=True))
    made = sum(taken.get(seed, 0) > 0 for seed in range(29))
    assert (mixed.found, mixed.agreed, len(mixed)) == (made, 24, made + 5)
    assert mixed.share == made / 24
    assert mixed.message == (
        f"{made} of 24 seeds led to an input on which the models disagree within 3 steps. They disagree on 5 more "
        "without any change."
    )
    alone = differential_search(models, apart, "linf", iterations=3)
    assert (alone.found, alone.agreed, alone.share) == (0, 0, 0)
    assert alone.message.startswith("No difference found")


def test_seeds_that_differ_already_take_no_step(models, seeds):
    found = differential_search(models, seeds, iterations=0)
    assert len(found) == 0
    found = differential_search(models, some_pictures(200), iterations=0)
    assert 0 < len(found) < 200
    assert not found.iterations.any()


def test_ten_models(seeds):
    models = [network(0), *(network(0) for _ in range(8)), network(1)]
    found = differential_search(models, seeds, "linf", iterations=10, turn=9)
    assert found.predictions.shape == (len(found), 10)
    assert len(found) > 0


def test_stop_keeps_what_was_found(models, seeds):
    full = differential_search(models, seeds, "linf", iterations=20, weight_coverage=0)
    found = differential_search(
        models, seeds, "linf", iterations=20, weight_coverage=0, on_progress=lambda done, total, label: done < 2
    )
    assert found.stopped
    early = full.iterations <= 2
    assert 0 < len(found) == early.sum() < len(full)
    np.testing.assert_array_equal(found.inputs, full.inputs[early])


def test_networks_are_left_as_found(seeds):
    models = [network(0).train(), network(1)]
    models[1][0].weight.requires_grad_(False)
    before = [{k: v.clone() for k, v in model.state_dict().items()} for model in models]
    differential_search(models, seeds, iterations=3)
    assert models[0].training
    assert not models[1].training
    assert not models[1][0].weight.requires_grad
    assert all(p.requires_grad and p.grad is None for p in models[0].parameters())
    for model, state in zip(models, before, strict=True):
        assert all(not m._forward_hooks and not m._forward_pre_hooks for m in model.modules())
        assert all(torch.equal(v, state[k]) for k, v in model.state_dict().items())


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
def test_every_objective_leads_to_disagreements(name, models, seeds):
    found = differential_search(models, seeds, "linf", weight_coverage=0, iterations=20, objective=name)
    assert len(found) > 0
    assert (found.predictions != found.predictions[:, :1]).any(1).all()
    assert np.abs(found.inputs - seeds[found.seed_index]).max() <= 0.3 + 1e-6
    assert found.settings["objective"] == name


def test_regression_differs_by_more_than_the_bound():
    models = [network(seed, outputs=1) for seed in (0, 1)]
    pictures = some_pictures(16)
    bound = float(np.abs(differential_search(models, pictures, bound=1e9).seed_predictions @ [1, -1]).max()) + 0.05
    found = differential_search(models, pictures, "linf", bound=bound, iterations=30)
    assert len(found) > 0
    assert found.predictions.dtype == np.float32
    assert (np.abs(found.predictions @ np.float32([1, -1])) > bound).all()
    assert found.iterations.min() > 0


@pytest.mark.parametrize("name", ["nc", "tknc", "snac", "nbc", "kmnc"])
def test_guided_by_a_criterion(name, models, seeds):
    criteria = [CRITERIA[name](model, ["0", "4"]).fit(seeds).update(seeds[:4]) for model in models]
    before = [one.reached for one in criteria]
    found = differential_search(models, seeds, "linf", weight_coverage=1.0, iterations=5, guidance=criteria)
    assert len(found) > 0
    for one, reached in zip(criteria, before, strict=True):
        np.testing.assert_array_equal(one.reached, reached)


def test_coverage_weight_raises_coverage_of_one_neuron():
    """Two equal networks and no difference to find: only the coverage part moves the pictures."""
    model = network(0)
    pictures = torch.full((4, 1, 12, 12), 0.5)
    criterion = CRITERIA["nc"](model, ["4"], threshold=1e6).fit(pictures)
    guide = make_guide(criterion, pictures[:1])
    searched = SearchedNetwork(model, pictures[:1], guide.layers)
    aims = guide.aims(np.array([0.0, 0.3, 0.6, 0.99]), lambda: None)
    value = lambda scores, active, rows: aims.value(active, rows)  # noqa: E731
    gradient = searched.climb(pictures, value)[1]
    before, after = searched.activations(pictures), searched.activations((pictures + 1e-3 * gradient).clamp(0, 1))
    neurons = aims.neurons[:, 0]
    assert neurons.tolist() == [0, 3, 7, 11]
    moved = gradient.abs().sum((1, 2, 3)) > 0
    assert moved.any()
    rows = torch.arange(4)[moved]
    assert (after[rows, neurons[moved]] > before[rows, neurons[moved]]).all()


def test_guided_by_cells(models, seeds):
    criterion = CRITERIA["idc"](models[0], "4", m=3).fit(seeds).update(seeds[:3])
    covered = criterion.covered
    found = differential_search(models, seeds, "linf", weight_coverage=5.0, iterations=5, guidance=[criterion])
    assert len(found) > 0
    assert criterion.covered == covered


def test_refusals(models, seeds):
    with pytest.raises(SettingError, match="at least two models"):
        differential_search(models[:1], seeds)
    with pytest.raises(SettingError, match="Unknown constraint"):
        differential_search(models, seeds, "fog")
    with pytest.raises(SettingError, match="Unknown objective"):
        differential_search(models, seeds, objective="luck")
    with pytest.raises(ModelError, match="one task"):
        differential_search([models[0], network(0, outputs=3)], seeds)
    with pytest.raises(DataError, match=r"0\.\.1"):
        differential_search(models, seeds * 255)
    with pytest.raises(SettingError, match="no activation to aim at"):
        differential_search(models, seeds, guidance=[CRITERIA["tknp"](models[0], "4")])
    with pytest.raises(SettingError, match="belongs to none"):
        differential_search(models, seeds, guidance=[CRITERIA["nc"](network(8), "4")])
    with pytest.raises(SettingError, match="step"):
        differential_search(models, seeds, step=0)
