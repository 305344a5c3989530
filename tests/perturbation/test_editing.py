"""One picture changed by hand: against the obvious way, pixel by pixel, and the loss along its direction."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from idc_core.perturbation.editing import PictureEdits, change_picture, loss_direction, noise_of
from tests.lrp.networks import settle

RANDOM = np.random.default_rng(0)
PICTURE = RANDOM.random((3, 6, 9)).astype(np.float32)
NOISE, DIRECTION = noise_of(PICTURE.shape, 7), np.sign(RANDOM.standard_normal(PICTURE.shape)).astype(np.float32)


def moved(picture, degrees, right, down):
    """Read every pixel where it was before it was turned, then shifted; past an edge, the edge goes on."""
    _, height, width = picture.shape
    result, angle = np.empty_like(picture), np.deg2rad(degrees)
    for row in range(height):
        for column in range(width):
            across, along = column - (width - 1) / 2 - right, row - (height - 1) / 2 - down
            x = np.clip(np.cos(angle) * across - np.sin(angle) * along + (width - 1) / 2, 0, width - 1)
            y = np.clip(np.sin(angle) * across + np.cos(angle) * along + (height - 1) / 2, 0, height - 1)
            left, top = int(x), int(y)
            for line, upright in ((top, 1 - y + top), (top + 1, y - top)):
                for place, flat in ((left, 1 - x + left), (left + 1, x - left)):
                    part = picture[:, min(line, height - 1), min(place, width - 1)] * upright * flat
                    result[:, row, column] = part if (line, place) == (top, left) else result[:, row, column] + part
    return result


def test_a_picture_is_turned_then_shifted_then_disturbed_then_painted():
    edits = PictureEdits(20.0, 1.5, -2.0, 0.1, 0.05, [(4, 255, 0, 51)])
    expected = np.clip(moved(PICTURE, 20.0, 1.5, -2.0) + 0.1 * NOISE + 0.05 * DIRECTION, 0, 1)
    expected[:, 0, 4] = [1, 0, 0.2]
    np.testing.assert_allclose(change_picture(PICTURE, edits, NOISE, DIRECTION), expected, atol=1e-5)
    np.testing.assert_array_equal(change_picture(PICTURE, PictureEdits(), NOISE, DIRECTION), PICTURE)


def test_noise_belongs_to_the_number_of_the_test():
    np.testing.assert_array_equal(noise_of((2, 3), 7), noise_of((2, 3), 7))
    assert (noise_of((2, 3), 7) != noise_of((2, 3), 8)).any()


def test_the_loss_grows_along_its_direction_and_the_network_stays_as_it_was():
    network = settle(
        nn.Sequential(nn.Flatten(), nn.Linear(162, 4), nn.ReLU(inplace=True), nn.Linear(4, 3), nn.Softmax(1))
    )
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    direction = loss_direction(network, PICTURE, 2, "classification")
    assert network.training
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())

    def loss(picture):
        scores = network[:4](torch.from_numpy(picture)[None].double())
        return float(F.cross_entropy(scores, torch.tensor([2])))

    for place in [(0, 0, 0), (1, 3, 4), (2, 5, 8)]:
        step = np.zeros_like(PICTURE)
        step[place] = 1e-3
        assert np.sign(loss(PICTURE + step) - loss(PICTURE - step)) == direction[place]


def test_the_direction_of_a_regression_leads_away_from_the_true_value():
    network = settle(nn.Sequential(nn.Flatten(), nn.Linear(162, 1)))
    value = float(network(torch.from_numpy(PICTURE)[None].double()))
    weight = network[1].weight.detach().numpy().reshape(PICTURE.shape)
    np.testing.assert_array_equal(loss_direction(network, PICTURE, value - 1, "regression"), np.sign(weight))
    np.testing.assert_array_equal(loss_direction(network, PICTURE, value + 1, "regression"), -np.sign(weight))
