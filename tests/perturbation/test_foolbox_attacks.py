"""PGD L2, DDN, the boundary attack and HopSkipJump are foolbox's own, within their distances and from seeds alone."""

import foolbox
import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.perturbation.attacks.foolbox_attacks import seeded_tensors
from idc_core.perturbation.attacks.hop_skip_jump import _estimates, searches
from idc_core.perturbation.attacks.pgd_l2 import _random_starts

DECISION_BASED = {"boundary": {"steps": 40}, "hop-skip-jump": {"steps": 2, "samples": 10}}


@pytest.fixture
def asked(lenet):
    return foolbox.PyTorchModel(lenet, bounds=(0, 1), device="cpu")


def test_pgd_l2_is_that_of_foolbox_from_the_same_start_and_stays_within_epsilon(lenet, digits, asked):
    class FromStart(foolbox.attacks.L2ProjectedGradientDescentAttack):
        def get_random_start(self, x0, epsilon):
            numbers = type("Batch", (), {"inputs": x0.raw, "numbers": np.arange(len(x0.raw)), "seed": 3})
            return x0 + epsilon * torch.tensor(_random_starts(numbers))

    inputs, labels = torch.tensor(digits.inputs), torch.tensor(digits.targets)
    expected = FromStart(rel_stepsize=0.2, steps=6).run(asked, inputs, labels, epsilon=1.5)
    found = idc.attack(lenet, digits, name="pgd-l2", epsilon=1.5, step=0.2, steps=6, seed=3)
    np.testing.assert_allclose(found.inputs, expected.numpy(), atol=1e-5)
    assert found.l2.max() <= 1.5 * (1 + 1e-5)
    starts = _random_starts(type("Batch", (), {"inputs": inputs, "numbers": np.arange(300), "seed": 0}))
    lengths = np.linalg.norm(starts.reshape(300, -1), axis=1)
    assert lengths.max() <= 1 + 1e-6


def test_ddn_is_that_of_foolbox(lenet, digits, asked):
    inputs, labels = torch.tensor(digits.inputs), torch.tensor(digits.targets)
    expected = foolbox.attacks.DDNAttack(init_epsilon=0.7, steps=15, gamma=0.1).run(asked, inputs, labels)
    found = idc.attack(lenet, digits, name="ddn", start=0.7, steps=15, gamma=0.1)
    np.testing.assert_allclose(found.inputs, expected.numpy(), atol=1e-5)


@pytest.mark.parametrize("name", DECISION_BASED)
def test_decision_based_attacks_are_those_of_foolbox_on_one_input_at_a_time(lenet, digits, asked, name):
    kinds = {
        "boundary": foolbox.attacks.BoundaryAttack(steps=40, spherical_step=0.2, source_step=0.1),
        "hop-skip-jump": foolbox.attacks.HopSkipJumpAttack(steps=2, initial_gradient_eval_steps=10),
    }
    found = idc.attack(lenet, digits.inputs[:5], digits.targets[:5], name, seed=2, **DECISION_BASED[name])
    blended = foolbox.attacks.LinearSearchBlendedUniformNoiseAttack(directions=50, steps=50)
    for row in range(5):
        aim = foolbox.criteria.Misclassification(torch.tensor(digits.targets[row : row + 1]))
        one = torch.tensor(digits.inputs[row : row + 1])
        if found.before[row] != digits.targets[row]:
            np.testing.assert_array_equal(found.inputs[row], one[0])
            continue
        start = blended.run(asked, seeded_tensors(2)(one), aim)
        with torch.random.fork_rng():
            torch.manual_seed(2)  # what foolbox draws by itself
            expected = kinds[name].run(asked, one, aim, starting_points=start.raw)
        # HopSkipJump searches the boundary to 784 ** -1.5 of the way.
        np.testing.assert_allclose(found.inputs[row], expected[0], atol=5e-5)


@pytest.mark.parametrize("name", DECISION_BASED)
def test_decision_based_attacks_ask_no_gradients_and_come_closer(lenet, digits, name):
    """A network whose scores are whole numbers has none; its predictions are the same."""

    class Steps(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = lenet

        def forward(self, x):
            scores = self.network(x)
            return nn.functional.one_hot(scores.argmax(1), scores.shape[1]).float()

    settings = DECISION_BASED[name]
    plain = idc.attack(lenet, digits, name=name, **settings)
    without = idc.attack(Steps().eval(), digits, name=name, **settings)
    np.testing.assert_allclose(plain.inputs, without.inputs, atol=1e-6)
    longer = idc.attack(lenet, digits, name=name, **{**settings, "steps": 4 * settings["steps"]})
    assert longer.l2[longer.fooled].mean() < 0.99 * plain.l2[longer.fooled].mean()


@pytest.mark.parametrize("name", DECISION_BASED)
def test_another_seed_walks_another_way_and_leaves_the_process_its_draws(lenet, digits, name):
    state = torch.random.get_rng_state()
    results = [idc.attack(lenet, digits, name=name, seed=seed, **DECISION_BASED[name]).inputs for seed in (0, 0, 1)]
    np.testing.assert_array_equal(results[0], results[1])
    assert np.abs(results[0] - results[2]).max() > 0.01
    assert torch.equal(state, torch.random.get_rng_state())


def test_an_input_without_a_start_stays_as_it_is(digits):
    """A network that says one class of everything."""
    network = nn.Sequential(nn.Flatten(), nn.Linear(784, 10))
    nn.init.zeros_(network[1].weight)
    nn.init.zeros_(network[1].bias)
    network[1].bias.data[4] = 1.0
    result = idc.attack(network, digits.inputs[:3], [4, 4, 4], "boundary", steps=5)
    np.testing.assert_array_equal(result.inputs, digits.inputs[:3])
    assert not result.success.any()


@pytest.mark.parametrize(("steps", "samples"), [(2, 10), (5, 30)])
def test_hop_skip_jump_asks_about_as_often_as_its_progress_assumes(lenet, digits, steps, samples):
    calls = []
    handle = lenet.register_forward_hook(lambda *_: calls.append(1))
    idc.attack(lenet, digits, name="hop-skip-jump", steps=steps, samples=samples)
    handle.remove()
    assert 0.5 < len(calls) / (_estimates(steps, samples) + searches(steps, 784) + 53) < 1.5
