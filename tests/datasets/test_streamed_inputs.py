"""Inputs that are read when they are asked for: as the array would be, through the engine, in little memory."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.attribution.gradients import as_tensor
from idc_core.coverage.neuron import NC
from idc_core.coverage.streamed import measure
from idc_core.datasets import streamed
from idc_core.datasets.dataset import Dataset, Items, content_fingerprint
from idc_core.datasets.streamed import StreamedInputs
from idc_core.errors import DataError
from idc_core.experiments.ablation import ablate
from idc_core.perturbation import noise
from idc_core.suites.suite import SuitePart, original
from idc_core.tracing.trace import collect

PIXELS = np.random.default_rng(0).integers(0, 256, (60, 3, 9, 9)).astype(np.uint8)
ARRAY = PIXELS.astype(np.float32) / np.float32(255)


class InMemory:
    """Pictures that are held."""

    where, shape = "my pictures", (3, 9, 9)

    def read(self, numbers):
        return PIXELS[numbers]

    def digest(self, numbers):
        return b"".join(PIXELS[number].tobytes() for number in numbers)


@pytest.fixture
def inputs():
    return StreamedInputs(InMemory(), np.arange(60))


@pytest.fixture(params=[0, 1 << 20])
def any_size(request, monkeypatch):
    """Parts are streamed, too, or arrays."""
    monkeypatch.setattr(streamed, "IN_MEMORY", request.param)


KEYS = {
    "one": 7,
    "the last": -1,
    "some": slice(5, 20),
    "every third": slice(None, None, 3),
    "backwards": slice(None, None, -7),
    "none": slice(0, 0),
    "listed": [3, 1, 1],
    "numbers": np.array([9, 0, -2]),
    "a mask": np.arange(60) % 7 == 0,
    "a table": np.array([[1, 2], [3, 4]]),
    "a pixel": (3, 0, 1, 2),
    "a channel": (slice(2, 9), 1),
    "rows of some": (np.array([4, 2]), slice(None), slice(3, 5)),
    "a new axis": None,
    "all": ...,
    "a last axis": (..., 0),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_any_index_gives_what_the_array_gives(inputs, any_size, key):
    found = inputs[key]
    assert found.shape == ARRAY[key].shape
    assert found.dtype == np.float32
    np.testing.assert_array_equal(np.asarray(found), ARRAY[key])


def test_a_number_that_is_not_there_is_an_index_error(inputs):
    with pytest.raises(IndexError):
        inputs[60]
    with pytest.raises(IndexError):
        inputs[np.ones(59, bool)]


def test_what_else_an_array_does(inputs, any_size):
    assert (inputs.shape, inputs.ndim, inputs.size, inputs.nbytes) == (ARRAY.shape, 4, ARRAY.size, ARRAY.nbytes)
    assert (inputs.min(), inputs.max()) == (ARRAY.min(), ARRAY.max())
    np.testing.assert_array_equal(inputs.max(axis=(1, 2, 3)), ARRAY.max(axis=(1, 2, 3)))
    np.testing.assert_array_equal(list(inputs), ARRAY)
    np.testing.assert_array_equal(inputs.mean(1), ARRAY.mean(1))
    np.testing.assert_array_equal(np.concatenate([inputs, ARRAY]), np.concatenate([ARRAY, ARRAY]))
    np.testing.assert_array_equal(ARRAY - inputs, np.zeros_like(ARRAY))
    assert np.asarray(inputs, np.float64).dtype == np.float64
    assert not hasattr(inputs, "detach")
    inputs.setflags(write=False)


def test_all_at_once_is_refused_where_it_is_more_than_is_allowed(one_mebibyte):
    many = StreamedInputs(InMemory(), np.zeros(2_000, np.int64))
    for reading in (np.asarray, lambda given: given.copy(), lambda given: noise.random_noise(given, seed=0)):
        with pytest.raises(DataError, match=r"^my pictures: this needs 2,000 inputs of 3 x 9 x 9 in memory at once"):
            reading(many)
    assert many.max() == ARRAY[0].max()
    assert many[:10].shape == (10, 3, 9, 9)


def dataset(inputs):
    items = Items(inputs, np.arange(60) % 3)
    ids = np.arange(60)
    print_ = content_fingerprint(items, ("a", "b", "c"))
    return Dataset("toy", "test", inputs, items.targets, ("a", "b", "c"), "classification", (), (), ids, print_)


def test_the_fingerprint_tells_content_and_order(inputs):
    backwards = StreamedInputs(InMemory(), np.arange(60)[::-1])
    assert dataset(inputs).fingerprint == dataset(StreamedInputs(InMemory(), np.arange(60))).fingerprint
    assert dataset(inputs).fingerprint != dataset(backwards).fingerprint
    assert dataset(inputs).only(np.arange(5)).fingerprint != dataset(inputs).fingerprint
    assert len(dataset(inputs).sample(20)) == 20


def test_the_engine_finds_what_it_finds_in_arrays(inputs, any_size):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(196, 8), nn.ReLU(), nn.Linear(8, 3))
    plain, read = dataset(ARRAY), dataset(inputs)
    first, second = (idc.analyze(net, one, one, "3", 3) for one in (plain, read))
    assert first.score == second.score
    np.testing.assert_array_equal(first.important, second.important)
    np.testing.assert_array_equal(collect(net, read, ["0"]).scores, collect(net, plain, ["0"]).scores)
    np.testing.assert_array_equal(original(read).take([5, 3]), ARRAY[[5, 3]])
    torch.testing.assert_close(as_tensor(net, read), as_tensor(net, plain))
    for one in (plain, read):
        assert 0 <= ablate(net, one, one.targets, "3", first.important).baseline <= 1
    assert measure([NC(net, "3")], plain, plain) == measure([NC(net, "3")], read, read)


def test_large_inputs_are_made_few_at_a_time():
    large = StreamedInputs(InMemory(), np.arange(60))
    assert SuitePart.of(large, "x").at_a_time == 1024
    large._source.shape = (3, 1000, 1000)
    assert SuitePart.of(large, "x").at_a_time == 11


LARGE = """
import shutil
import sys
import numpy as np
import torch
from torch import nn
from pathlib import Path
from PIL import Image
import idc_core as idc
from idc_core.coverage.neuron import NC
from idc_core.coverage.streamed import measure
from idc_core.datasets.registry import open_data

root = Path(sys.argv[1])
random = np.random.default_rng(0)
for number in range(1000):
    folder = root / ("test" if number % 10 == 0 else "train") / "ab"[number % 2]
    folder.mkdir(parents=True, exist_ok=True)
    low = Image.fromarray(random.integers(0, 256, (8, 8, 3)).astype(np.uint8))
    low.resize((224, 224)).save(folder / f"{number}-0.jpg", quality=60)
    for copy in (1, 2, 3):
        shutil.copy(folder / f"{number}-0.jpg", folder / f"{number}-{copy}.jpg")
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(3, 8, 8, 8), nn.ReLU(), nn.MaxPool2d(4), nn.Flatten(), nn.Linear(392, 16), nn.ReLU(), nn.Linear(16, 2)
)
name = open_data(root).name
train, test = (idc.load_dataset(name, split) for split in ("train", "test"))
assert train.inputs.nbytes + test.inputs.nbytes > 2.4e9
result = idc.analyze(net, train, test, "4", 3)
assert 0 < result.score <= 1
measure([NC(net, "4")], train, test)
assert len(train.sample(3000)) == 3000
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) // 1024)
"""


@pytest.mark.rare
@pytest.mark.skipif(sys.platform != "linux", reason="the process measures itself as only Linux can")
def test_four_thousand_pictures_take_a_fifth_of_their_size(tmp_path):
    environment = {**os.environ, "IDC_HOME": str(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(tmp_path / "large")],
        cwd=Path(__file__).resolve().parents[2],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stderr[-3000:]
    assert int(done.stdout) < 800
