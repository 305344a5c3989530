"""A network is left as it was found: after success, refusal, an exception, an interruption, and by other threads."""

import concurrent.futures
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from idc_core import IDC, relevance
from idc_core.errors import CancelledError, ModelError, UnsupportedOperationError
from idc_core.lrp.rules import RelevanceSettings
from idc_core.lrp.session import lock_of
from idc_core.tracing.trace import collect, trace
from tests.lrp.networks import CLASSES, IMAGES, ROWS, SEQUENCES, Written, numbers, settle

MANY = numbers(40, 2, 7, 7)


def build():
    """A network in a mixed state: partly in training, partly frozen, with gradients and the user's own hooks."""
    network = settle(
        nn.Sequential(
            nn.Conv2d(2, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(inplace=True),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Dropout(),
            nn.Linear(16, CLASSES),
        )
    )
    network.train()
    network[1].eval()
    network[0].bias.requires_grad_(False)
    network[6].weight.grad = torch.full_like(network[6].weight, 0.5)
    network[2].register_forward_hook(lambda module, inputs, output: None)
    network[3].register_forward_pre_hook(lambda module, inputs: None)
    return network


def state(network):
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_forward_hooks_with_kwargs")
    return {
        "training": [module.training for module in network.modules()],
        "hooks": [[list(getattr(module, name)) for name in hooks] for module in network.modules()],
        "requires_grad": [parameter.requires_grad for parameter in network.parameters()],
        "identity": [id(tensor) for tensor in (*network.parameters(), *network.buffers())],
        "values": [tensor.detach().numpy().tobytes() for tensor in (*network.parameters(), *network.buffers())],
        "grad": [None if p.grad is None else (id(p.grad), p.grad.numpy().tobytes()) for p in network.parameters()],
        "attributes": [sorted(vars(module)) for module in network.modules()],
    }


def assert_free(network):
    """Another thread can take the network's lock."""
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(lock_of(network).acquire, timeout=0).result()
        pool.submit(lock_of(network).release).result()


class Refusing(nn.Module):
    def forward(self, x):
        return torch.cumprod(x, -1)


class Failing(nn.Module):
    """Fails from the second pass on: the first is the trial with one input."""

    def __init__(self, error):
        super().__init__()
        self.error, self.passes = error, 0

    def forward(self, x):
        self.passes += 1
        if self.passes > 1:
            raise self.error
        return x


def stop(done, total, label):
    return False


def interrupt(done, total, label):
    raise KeyboardInterrupt


def run_relevance(network, **options):
    relevance(network, MANY, ["input", "0", "3"], batch_size=8, **options)


def run_collect(network, **options):
    collect(network, MANY, ["0"], batch_size=8, **options)


def run_fit(network, **options):
    IDC(network, "0", m=2, batch_size=8).fit(MANY, **options)


WORK = {"relevance": run_relevance, "collect": run_collect, "fit": run_fit}


@pytest.mark.parametrize("work", WORK)
class TestLeftAsFound:
    def test_after_success(self, work):
        network = build()
        before = state(network)
        WORK[work](network)
        assert state(network) == before
        assert_free(network)

    def test_after_a_refusal(self, work):
        network = build()
        network.insert(4, Refusing())
        before = state(network)
        if work == "collect":
            WORK[work](network)
        else:
            with pytest.raises(UnsupportedOperationError, match="cumprod in module '4'"):
                WORK[work](network)
        assert state(network) == before
        assert_free(network)

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (RuntimeError("out of luck"), ModelError),
            (ZeroDivisionError(), ModelError),
            (KeyboardInterrupt(), KeyboardInterrupt),
        ],
    )
    def test_after_an_exception_in_the_network(self, work, error, expected):
        network = build()
        network.insert(4, Failing(error))
        before = state(network)
        with pytest.raises(expected):
            WORK[work](network)
        assert state(network) == before
        assert_free(network)

    @pytest.mark.parametrize(("answer", "expected"), [(stop, CancelledError), (interrupt, KeyboardInterrupt)])
    def test_after_an_interruption(self, work, answer, expected):
        network = build()
        before = state(network)
        with pytest.raises(expected):
            WORK[work](network, on_progress=answer)
        assert state(network) == before
        assert_free(network)


@pytest.mark.parametrize("settings", [None, RelevanceSettings()])
def test_left_as_found_between_batches_and_when_abandoned(settings):
    network = build()
    before = state(network)
    batches = trace(network, MANY, ["0"], settings, batch_size=8)
    for _ in range(2):
        next(batches)
        assert state(network) == before
        assert_free(network)
    batches.close()
    assert state(network) == before
    assert_free(network)


def test_relevance_is_of_evaluation_mode():
    network = build()
    found = relevance(network, MANY, ["input"])["input"]
    np.testing.assert_array_equal(relevance(network.eval(), MANY, ["input"])["input"], found)


def test_nothing_keeps_the_network_alive():
    network = build()
    relevance(network, MANY, ["input"])
    gone = weakref.ref(network)
    del network
    gc.collect()
    assert gone() is None


def test_outer_modes_do_not_matter():
    network = build()
    expected = relevance(network, MANY, ["input", "0"])
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
        with mode():
            found = relevance(network, MANY.clone(), ["input", "0"])
            assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
            assert torch.is_grad_enabled() == (mode is torch.enable_grad)
        for layer, values in expected.items():
            np.testing.assert_array_equal(found[layer], values)


class TestInputs:
    @pytest.mark.parametrize("layers", [["out"], ["input", "out"], ["input"]])
    @pytest.mark.parametrize("settings", [None, RelevanceSettings("z", bias="redistribute")])
    def test_a_network_that_writes_into_its_input(self, layers, settings):
        def forward(net, x):
            x -= 0.5
            return net.out(F.relu(x, inplace=True).flatten(1))

        given = numbers(40, 6)
        network = settle(Written(forward, out=nn.Linear(6, CLASSES)))
        inputs = given.numpy().copy()
        found = collect(network, inputs, layers, settings, batch_size=16)
        np.testing.assert_array_equal(inputs, given)
        expected = network.out(F.relu(given - 0.5)).detach()
        np.testing.assert_allclose(found.scores, expected, rtol=1e-5, atol=1e-5)
        if "input" in layers:
            np.testing.assert_allclose(found.activations["input"], given, rtol=1e-5, atol=1e-6)
            if settings:
                np.testing.assert_allclose(found.relevance["input"].sum(1), expected.amax(1), rtol=1e-4)

    def test_gradients_of_the_inputs(self):
        inputs = IMAGES.clone().requires_grad_()
        relevance(build(), inputs, ["input"])
        assert inputs.grad is None
        assert inputs.requires_grad


@pytest.mark.parametrize("settings", [None, RelevanceSettings()])
def test_a_residual_sum_in_place_leaves_the_captured_layer(settings):
    def forward(net, x):
        y = net.a(x)
        y += x
        return net.out(y.relu_())

    network = settle(Written(forward, a=nn.Linear(6, 6), out=nn.Linear(6, CLASSES)))
    found = collect(network, ROWS, ["a"], settings).activations["a"]
    np.testing.assert_allclose(found, network.a(ROWS).detach(), rtol=1e-6)


class TestThreads:
    def test_four_threads_share_a_network(self):
        network = build()
        jobs = [
            (rule, layers, IMAGES if index % 2 else MANY[8 * index : 8 * index + 8])
            for index, (rule, layers) in enumerate(
                [("z", ["input"]), ("alpha-beta", ["0", "3"]), ("gamma", ["3"]), ("epsilon", ["0"])]
            )
        ]
        expected = [relevance(network, inputs, layers, rule) for rule, layers, inputs in jobs]
        before = state(network)
        barrier = threading.Barrier(4)

        def work(job):
            rule, layers, inputs = jobs[job]
            barrier.wait()
            return [relevance(network, inputs, layers, rule, batch_size=2) for _ in range(5)]

        with ThreadPoolExecutor(4) as pool:
            for job, results in zip(range(4), pool.map(work, range(4)), strict=True):
                for result in results:
                    assert list(result) == list(expected[job])
                    for layer, values in expected[job].items():
                        np.testing.assert_allclose(result[layer], values, rtol=1e-9, atol=1e-12)
        assert state(network) == before

    def test_engine_calls_wait_for_each_other(self):
        network = settle(Written(lambda net, x: net.out(net.wait(x)), wait=nn.Identity(), out=nn.Linear(6, 3)))
        states, waited, main = [], [], threading.current_thread()

        def try_from_outside(module, inputs, output):
            if threading.current_thread() is main and not states:
                states.append(pool.submit(lambda: relevance(network, -ROWS, ["input"])))
                waited.append(concurrent.futures.wait(states, timeout=0.2).not_done)

        network.wait.register_forward_hook(try_from_outside)
        with ThreadPoolExecutor(1) as pool:
            found = relevance(network, ROWS, ["input"])
            assert waited[0], "another call ran while the first held the network"
            theirs = states[0].result(10)
        np.testing.assert_array_equal(relevance(network, ROWS, ["input"])["input"], found["input"])
        np.testing.assert_array_equal(relevance(network, -ROWS, ["input"])["input"], theirs["input"])

    @pytest.mark.parametrize("settings", [None, RelevanceSettings()])
    def test_passes_of_another_thread_are_not_heard(self, settings):
        # While our pass is under way, another thread runs the network without the engine, from end to end.
        network = settle(
            Written(
                lambda net, x: net.out(net.wait(net.a(x))), a=nn.Linear(6, 6), out=nn.Linear(6, 3), wait=nn.Identity()
            )
        )
        expected = collect(network, ROWS, ["a"], settings)
        main, theirs = threading.current_thread(), []

        def use():
            with torch.no_grad():
                return network(-ROWS)

        def let_another_run(module, inputs, output):
            if threading.current_thread() is main:
                theirs.append(pool.submit(use).result(10))

        with torch.no_grad():
            alone = network(-ROWS)
        network.wait.register_forward_hook(let_another_run)
        with ThreadPoolExecutor(1) as pool:
            found = collect(network, ROWS, ["a"], settings)
        assert theirs
        for scores in theirs:
            np.testing.assert_array_equal(scores, alone)
        np.testing.assert_array_equal(found.activations["a"], expected.activations["a"])
        for layer, values in expected.relevance.items():
            np.testing.assert_array_equal(found.relevance[layer], values)

    def test_hooks_may_come_and_go_during_a_pass_of_another_thread(self):
        network = settle(
            Written(
                lambda net, x: net.out(net.wait(net.a(x))), a=nn.Linear(6, 6), out=nn.Linear(6, 3), wait=nn.Identity()
            )
        )
        inside, leave, other = threading.Event(), threading.Event(), []

        def wait(module, inputs, output):
            if threading.current_thread() in other:
                inside.set()
                leave.wait(10)

        network.wait.register_forward_hook(wait)

        def use():
            other.append(threading.current_thread())
            with torch.no_grad():
                return network(-ROWS)

        def let_it_leave(module, inputs):
            if threading.current_thread() not in other:
                leave.set()
                theirs.result(10)

        network.a.register_forward_pre_hook(let_it_leave)
        with ThreadPoolExecutor(1) as pool:
            theirs = pool.submit(use)
            assert inside.wait(10)
            found = relevance(network, ROWS, ["a"])["a"]
        assert np.isfinite(found).all()
        assert theirs.result().shape == (4, 3)

    def test_a_refused_call_does_not_block_the_next(self):
        network = settle(Written(lambda net, x: net.out(torch.cumprod(x[:, -1], -1)), out=nn.Linear(6, 3)))
        with ThreadPoolExecutor(1) as pool:
            with pytest.raises(UnsupportedOperationError):
                pool.submit(relevance, network, SEQUENCES, ["input"]).result()
            assert relevance(network, SEQUENCES, ["out"])["out"].shape == (4, 3)
