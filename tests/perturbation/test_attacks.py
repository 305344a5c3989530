"""Every attack by the same table, and what holds for single ones."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import foolbox
import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.errors import DataError, ModelError, SettingError
from idc_core.perturbation import ATTACKS
from idc_core.perturbation.attacks.result import sizes
from tests.perturbation.conftest import COUNT

QUICK = {
    "fgsm": {},
    "bim": {"steps": 5},
    "pgd": {"steps": 8, "step": 0.06},
    "deepfool": {"steps": 20},
    "cw": {"learning_rate": 0.1, "iterations": 30, "search_steps": 3, "initial_constant": 1.0},
    "jsma": {},
    "pgd-l2": {"steps": 8, "epsilon": 4.0},
    "ddn": {"steps": 20},
    "boundary": {"steps": 20},
    "hop-skip-jump": {"steps": 2, "samples": 10},
}
LARGEST = {"fgsm": 0.3, "bim": 0.3, "pgd": 0.3}


def quick(name):
    """Settings that keep an attack short; one that is not in the table is short as it is."""
    return QUICK.get(name, {})


@cache
def attacked(name, model):
    """The one attack of all digits that several tests look at."""
    return idc.attack(model, idc.load_dataset("digits", limit=COUNT), name=name, **quick(name))


@cache
def attacked_in_parts(name, model):
    """The same by five inputs at a time, and how far it told to be."""
    told = []
    digits = idc.load_dataset("digits", limit=COUNT)
    watched = {"batch_size": 5, "on_progress": lambda done, *rest: told.append(done)}
    return idc.attack(model, digits, name=name, **watched, **quick(name)), told


def state_of(model):
    return (
        [module.training for module in model.modules()],
        [parameter.requires_grad for parameter in model.parameters()],
        [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules()],
        [parameter.grad for parameter in model.parameters()],
        [parameter.detach().clone() for parameter in model.parameters()],
    )


def assert_same_state(before, after):
    assert before[:4] == after[:4]
    assert all(map(torch.equal, before[4], after[4]))


def test_every_attack_is_in_the_table():
    assert set(QUICK) <= set(ATTACKS)
    assert next(iter(ATTACKS)) == "fgsm"


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_fools_the_network_and_says_so_truly(name, lenet, digits):
    result = attacked(name, lenet)
    assert result.complete
    assert result.done == len(digits)
    assert result.inputs.shape == digits.inputs.shape
    assert result.inputs.dtype == np.float32
    assert result.inputs.min() >= 0
    assert result.inputs.max() <= 1
    with torch.no_grad():
        first, second = (lenet(torch.tensor(one)).argmax(1).numpy() for one in (digits.inputs, result.inputs))
    np.testing.assert_array_equal(result.before, first)
    # Carlini-Wagner and DeepFool end on the border between two classes, where rounding may decide.
    assert (result.predictions == second).mean() > 0.9
    np.testing.assert_array_equal(result.success, result.predictions != digits.targets)
    assert result.success_rate >= 0.8
    assert result.linf.max() <= LARGEST.get(name, 1.0) + 1e-6


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ATTACKS)
def test_the_network_is_left_as_it_was_found(name, lenet, digits):
    inputs = digits.inputs.copy()
    lenet.train()
    next(lenet.parameters()).requires_grad_(False)
    before = state_of(lenet)
    try:
        with torch.no_grad():
            idc.attack(lenet, digits.inputs[:4], digits.targets[:4], name, **quick(name))
        assert_same_state(before, state_of(lenet))
        stopped = idc.attack(
            lenet, digits, name=name, batch_size=4, on_progress=lambda done, *rest: done < 6, **quick(name)
        )
        assert not stopped.complete
        assert_same_state(before, state_of(lenet))
        np.testing.assert_array_equal(digits.inputs, inputs)
    finally:
        lenet.eval()
        next(lenet.parameters()).requires_grad_(True)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ATTACKS)
def test_results_do_not_depend_on_how_inputs_are_cut(name, lenet, digits):
    whole, (cut, _) = attacked(name, lenet), attacked_in_parts(name, lenet)
    part = idc.attack(lenet, digits.inputs[7:9], digits.targets[7:9], name, numbers=[7, 8], **quick(name))
    # Rounding may turn the sign of a gradient that is almost 0, never many.
    for one, other in ((whole.inputs, cut.inputs), (whole.inputs[7:9], part.inputs)):
        assert (np.abs(one - other) > 2e-3).mean() < 0.002
    np.testing.assert_allclose(whole.l2, cut.l2, rtol=0.01)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ATTACKS)
def test_stopping_keeps_what_is_finished(name, lenet, digits):
    def stop_after_two_batches(done, total, label):
        assert total == len(digits)
        assert ATTACKS[name].label in label
        return done < 10

    stopped = idc.attack(lenet, digits, name=name, batch_size=5, on_progress=stop_after_two_batches, **quick(name))
    assert stopped.done == 10
    assert stopped.total == len(digits)
    assert not stopped.complete
    whole, _ = attacked_in_parts(name, lenet)
    np.testing.assert_array_equal(stopped.inputs, whole.inputs[:10])
    np.testing.assert_array_equal(stopped.success, whole.success[:10])
    nothing = idc.attack(lenet, digits, name=name, on_progress=lambda *told: False, **quick(name))
    assert nothing.done == 0
    assert nothing.inputs.shape == (0, 1, 28, 28)


@pytest.mark.parametrize("name", ATTACKS)
def test_progress_only_grows_and_ends_with_all(name, lenet, digits):
    _, told = attacked_in_parts(name, lenet)
    assert told == sorted(told)
    assert told[0] == 0
    assert told[-1] == len(digits)
    assert len(told) >= 4


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", [name for name in ATTACKS if ATTACKS[name].takes_goal])
def test_the_wrong_answer_can_be_chosen(name, lenet, digits):
    settings = {**quick(name), **({"epsilon": 0.5} if name in LARGEST else {})}
    settings |= {"epsilon": 6.0} if name == "pgd-l2" else {}
    result = idc.attack(lenet, digits, name=name, goal=3, **settings)
    np.testing.assert_array_equal(result.success, result.predictions == 3)
    np.testing.assert_array_equal(result.goal, 3)
    before = (result.before == 3).mean()
    assert result.success.mean() > before + 0.1


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ATTACKS)
def test_a_softmax_at_the_end_changes_nothing(name, lenet, digits):
    """Behind it the gradients of sure answers would be zero."""
    behind = nn.Sequential(lenet, nn.Softmax(1)).eval()
    plain = idc.attack(lenet, digits.inputs[:6], digits.targets[:6], name, **quick(name))
    wrapped = idc.attack(behind, digits.inputs[:6], digits.targets[:6], name, **quick(name))
    np.testing.assert_allclose(plain.inputs, wrapped.inputs, atol=1e-6)


@pytest.mark.parametrize("name", ATTACKS)
def test_networks_that_write_into_their_input_are_attacked_all_the_same(name, digits):
    class Writes(nn.Module):
        def __init__(self):
            super().__init__()
            self.last = nn.Linear(784, 10)

        def forward(self, x):
            return self.last(x.mul_(2).flatten(1))

    class Reads(Writes):
        def forward(self, x):
            return self.last((x * 2).flatten(1))

    torch.manual_seed(0)
    writes = Writes().eval()
    reads = Reads().eval()
    reads.load_state_dict(writes.state_dict())
    one, other = (
        idc.attack(model, digits.inputs[:4], digits.targets[:4], name, **quick(name)) for model in (writes, reads)
    )
    np.testing.assert_allclose(one.inputs, other.inputs, atol=1e-6)


LAWS = (
    test_every_attack_fools_the_network_and_says_so_truly,
    test_the_network_is_left_as_it_was_found,
    test_results_do_not_depend_on_how_inputs_are_cut,
    test_stopping_keeps_what_is_finished,
    test_progress_only_grows_and_ends_with_all,
    test_a_softmax_at_the_end_changes_nothing,
    test_networks_that_write_into_their_input_are_attacked_all_the_same,
)
"""What every attack obeys, one from elsewhere too; a goal it obeys where it takes one."""


def test_fgsm_is_one_step_along_the_sign_of_the_gradient(lenet, digits):
    point = torch.tensor(digits.inputs).requires_grad_()
    nn.functional.cross_entropy(lenet(point), torch.tensor(digits.targets), reduction="sum").backward()
    expected = (point + 0.1 * point.grad.sign()).clamp(0, 1).detach().numpy()
    result = idc.attack(lenet, digits, name="fgsm", epsilon=0.1)
    assert (np.abs(result.inputs - expected) > 1e-6).mean() < 1e-3


def test_bim_is_clipped_small_steps(lenet, digits):
    start, labels = torch.tensor(digits.inputs), torch.tensor(digits.targets)
    point = start.clone()
    for _ in range(4):
        point = point.detach().requires_grad_()
        nn.functional.cross_entropy(lenet(point), labels, reduction="sum").backward()
        point = (start + (point + 0.05 * point.grad.sign() - start).clamp(-0.12, 0.12)).clamp(0, 1)
    result = idc.attack(lenet, digits, name="bim", epsilon=0.12, step=0.05, steps=4)
    assert (np.abs(result.inputs - point.detach().numpy()) > 1e-6).mean() < 1e-3


def test_pgd_starts_elsewhere_for_every_seed(lenet, digits):
    results = [idc.attack(lenet, digits, name="pgd", seed=seed, steps=1, step=0.001) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(results[0].inputs, results[1].inputs)
    assert (np.abs(results[0].inputs - results[2].inputs) > 0.01).mean() > 0.3


def test_deepfool_finds_the_nearest_border_of_a_linear_network():
    """There the distance is known: the smallest score difference / |weight difference|, to which foolbox adds 1e-4."""
    torch.manual_seed(1)
    layer = nn.Linear(12, 4)
    layer.weight.data *= 0.3
    linear = nn.Sequential(nn.Flatten(), layer).eval()
    pictures = np.random.default_rng(0).uniform(0.4, 0.6, (6, 1, 3, 4)).astype(np.float32)
    scores = linear(torch.tensor(pictures)).detach().numpy()
    labels = scores.argmax(1)
    weight = layer.weight.detach().numpy()
    nearest = [
        min(
            (scores[row, label] - scores[row, other]) / np.linalg.norm(weight[label] - weight[other])
            for other in range(4)
            if other != label
        )
        for row, label in enumerate(labels)
    ]
    result = idc.attack(linear, pictures, labels, "deepfool")
    assert result.success.all()
    assert result.linf.max() < 0.4
    np.testing.assert_allclose(result.l2, (np.array(nearest) + 1e-4) * 1.02, rtol=1e-3)


def test_foolbox_itself_gives_the_same_pictures(lenet, digits):
    network = foolbox.PyTorchModel(lenet, bounds=(0, 1), device="cpu")
    inputs, labels = torch.tensor(digits.inputs), torch.tensor(digits.targets)
    for name, attack, settings in (
        ("fgsm", foolbox.attacks.LinfFastGradientAttack(), {"epsilons": 0.3}),
        ("deepfool", foolbox.attacks.L2DeepFoolAttack(steps=20), {"epsilons": None}),
    ):
        _, expected, _ = attack(network, inputs, labels, **settings)
        found = idc.attack(lenet, digits, name=name, **quick(name)).inputs
        assert (np.abs(found - expected.numpy()) > 1e-3).mean() < 2e-3


def test_sizes_are_counted_by_pixel():
    before = np.zeros((2, 3, 2, 2), np.float32)
    after = before.copy()
    after[0, :, 0, 1] = (0.3, 0.4, 0.0)
    after[0, 2, 1, 1] = 0.12
    after[1, 0, 0, 0] = 1e-6
    pixels, length, largest = sizes(before, after)
    assert pixels.tolist() == [2, 0]
    np.testing.assert_allclose(length, [np.sqrt(0.25 + 0.0144), 1e-6], rtol=1e-4)
    np.testing.assert_allclose(largest, [0.4, 1e-6], rtol=1e-4)


def test_confusion_counts_answers_before_and_after(lenet, digits):
    result = idc.attack(lenet, digits)
    before, after = result.confusion(10)
    for counts, answers in ((before, result.before), (after, result.predictions)):
        assert counts.sum() == len(digits)
        for label, answer in zip(digits.targets, answers, strict=True):
            counts[label, answer] -= 1
        assert not counts.any()
    assert result.fooled.sum() == (result.success & (result.before == result.targets)).sum()


def test_gradients_are_the_same_on_a_network_in_double_precision(digits):
    model = idc.load_model("lenet1-digits").double()
    result = idc.attack(model, digits)
    assert result.inputs.dtype == np.float32
    assert result.success_rate > 0.5


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"name": "fgms"}, SettingError, "expected one of fgsm, bim"),
        ({"epsilon": 2.0}, SettingError, "epsilon of FGSM must be a number from 0.001 to 1.0"),
        ({"steps": 3}, SettingError, "FGSM has no parameter 'steps'; its parameters: epsilon"),
        ({"name": "bim", "steps": 2.5}, SettingError, "whole number"),
        ({"preset": "sensible"}, SettingError, "FGSM has no preset 'sensible'; its presets: none"),
        ({"name": "cw", "preset": "best"}, SettingError, "its presets: paper, sensible"),
        ({"name": "deepfool", "goal": 3}, SettingError, "goal cannot be given"),
        ({"goal": 10}, DataError, "goal must lie in 0..9"),
        ({"goal": 1.5}, DataError, "goal must be one class"),
        ({"targets": [1, 2]}, DataError, f"for each of {COUNT} inputs"),
        ({"targets": np.full(COUNT, -1)}, DataError, "targets must lie in 0..9"),
        ({"batch_size": 0}, SettingError, "batch_size"),
        ({"seed": -3}, SettingError, "seed"),
        ({"numbers": [1]}, DataError, "numbers"),
    ],
)
def test_mistakes_get_a_sentence(arguments, error, message, lenet, digits):
    with pytest.raises(error, match=message):
        idc.attack(lenet, digits, **arguments)


def test_inputs_without_classes_and_none_at_all_are_refused(lenet, digits):
    with pytest.raises(DataError, match="pass targets"):
        idc.attack(lenet, digits.inputs)
    with pytest.raises(DataError, match="at least one"):
        idc.attack(lenet, digits.inputs[:0], digits.targets[:0])


def test_regressions_and_networks_that_fail_are_refused(digits):
    steering = nn.Sequential(nn.Flatten(), nn.Linear(784, 1))
    with pytest.raises(SettingError, match="one number"):
        idc.attack(steering, digits)
    narrow = nn.Sequential(nn.Flatten(), nn.Linear(100, 10))
    with pytest.raises(ModelError, match="shape"):
        idc.attack(narrow, digits)


@pytest.mark.slow
def test_foolbox_is_imported_when_it_is_needed_and_where_there_is_no_git():
    program = (
        "import sys, idc_core.perturbation; assert 'foolbox' not in sys.modules; "
        "from idc_core.perturbation.attacks.foolbox_attacks import load_foolbox; assert load_foolbox().attacks"
    )
    environment = {**os.environ, "PATH": "", "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


class Several(nn.Module):
    """Returns scores beside features, in the form that a test asks for."""

    def __init__(self, form):
        super().__init__()
        self.form, self.features, self.scores = form, nn.Linear(36, 16), nn.Linear(16, 3)

    def forward(self, x):
        features = torch.relu(self.features(x.flatten(1)))
        return self.form(features, self.scores(features))


FORMS = {
    "dictionary": lambda features, scores: {"features": features, "logits": scores},
    "tuple": lambda features, scores: (scores, features),
    "record": lambda features, scores: SimpleNamespace(features=features, logits=scores),
}


@pytest.mark.sampled(7)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ATTACKS)
def test_scores_among_other_results_are_attacked(name, form):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        alone = Several(lambda features, scores: scores).eval()
    several = Several(FORMS[form]).eval()
    several.load_state_dict(alone.state_dict())
    pictures = np.random.default_rng(1).random((5, 1, 6, 6), np.float32)
    with torch.no_grad():
        targets = alone(torch.tensor(pictures)).argmax(1).numpy()
    found, expected = (idc.attack(one, pictures, targets, name, **quick(name)) for one in (several, alone))
    np.testing.assert_array_equal(found.inputs, expected.inputs)
    np.testing.assert_array_equal(found.predictions, expected.predictions)
