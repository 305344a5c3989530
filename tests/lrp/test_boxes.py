"""What is explained of detectors and of masks: equal to loops over boxes and pixels, in every form of outputs."""

import numpy as np
import pytest
import torch
from torch import nn

import idc_core as idc
from idc_core.errors import ModelError, SettingError
from idc_core.lrp.axes import Axes, found_axes
from idc_core.lrp.explained import explaining, meaning_of, said_of
from tests.lrp.networks import IMAGES, Written, settle, total

CLASSES = 3


def boxes_of(net, x):
    """Return numbers per box (n, boxes, 9): 4 of the box, and 5 that scores are made of."""
    return net.out(torch.relu(net.a(x))).flatten(2).transpose(1, 2)


def yolo8(values):
    return torch.cat([values[..., :4], values[..., 4:7].sigmoid()], -1).transpose(1, 2)


def yolo8_masks(values):
    return torch.cat([values[..., :4], values[..., 4:7].sigmoid(), values[..., :2] * 9], -1).transpose(1, 2)


def yolo5(values):
    return torch.cat([values[..., :4], values[..., 4:8].sigmoid()], -1)


FORMS = {
    "boxes,classes": lambda values: {"logits": values[..., 4:7], "pred_boxes": values[..., :4]},
    "classes,boxes": lambda values: values[..., 4:7].sigmoid().transpose(1, 2),
    "boxes,classes+1": lambda values: {"logits": values[..., 4:8], "pred_boxes": values[..., :4]},
    "boxes,1+classes": lambda values: (values[..., 4:8].softmax(-1), values[..., :4]),
    "1+classes,boxes": lambda values: values[..., 4:8].transpose(1, 2).softmax(1),
    "4+classes,boxes": yolo8,
    "4+classes+2,boxes": yolo8_masks,
    "boxes,5+classes": yolo5,
}


def detector(axes):
    def forward(net, x):
        return FORMS[axes](boxes_of(net, x))

    modules = {"a": nn.Conv2d(2, 6, 3, bias=False), "out": nn.Conv2d(6, 9, 1, bias=False)}
    return settle(Written(forward, **modules))


def score_slowly(axes, values, number):
    """Return the score of a class in one box, from the 9 numbers that the network has for it."""
    raw = values[4:].tolist() if torch.is_tensor(values) else values[4:]
    if axes == "boxes,classes+1":
        return raw[number] - raw[3]
    if axes.startswith(("boxes,1+", "1+")):
        return raw[number + 1] - raw[0]
    if axes == "boxes,5+classes":
        both = 1 / (1 + np.exp(-raw[0])) / (1 + np.exp(-raw[1 + number]))
        return np.log(both / (1 - both))
    return raw[number]


def scores_slowly(axes, network, name):
    with torch.no_grad():
        values = boxes_of(network, IMAGES)
    rows = []
    for picture in values:
        of_classes = [[score_slowly(axes, box, number) for box in picture] for number in range(CLASSES)]
        if name == "best-box":
            rows.append([max(scores) for scores in of_classes])
        else:
            found = [[score for score in scores if score > 0] or [max(scores)] for scores in of_classes]
            rows.append([sum(scores) / len(scores) for scores in found])
    return np.array(rows)


@pytest.mark.parametrize("name", ["best-box", "mean-boxes"])
@pytest.mark.parametrize("axes", FORMS)
def test_scores_are_those_of_boxes_one_by_one_and_relevance_sums_to_them(axes, name):
    network = detector(axes)
    expected = scores_slowly(axes, network, name)
    with explaining(network, f"{name}:{axes}"), torch.no_grad():
        np.testing.assert_allclose(network(IMAGES), expected, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(network(IMAGES[:1]), expected[:1], rtol=1e-9, atol=1e-9)
    settings = {"explain": f"{name}:{axes}", "target": 1, "bias": "redistribute"}
    found = idc.relevance(network, IMAGES, ["input", "a"], "z", **settings)
    for layer in ("input", "a"):
        np.testing.assert_allclose(total(found[layer]), expected[:, 1], rtol=1e-6, err_msg=layer)
    assert not network._forward_hooks
    assert not network._forward_pre_hooks


# Piecewise linear networks without biases: relevance by the z rule is gradient times input, of the winning box alone.
@pytest.mark.parametrize("axes", [axes for axes in FORMS if axes != "boxes,5+classes"])
def test_relevance_is_that_of_the_winning_box(axes):
    network = detector(axes)
    found = idc.relevance(network, IMAGES, ["input"], "z", explain=f"best-box:{axes}", target=2)["input"]
    for row, image in enumerate(IMAGES):
        given = image[None].clone().requires_grad_()
        values = boxes_of(network, given)[0]
        scores = [score_slowly(axes, box, 2) for box in values]
        raw = values[int(np.argmax(scores)), 4:]
        best = {"boxes,classes+1": raw[2] - raw[3]}.get(axes, raw[3] - raw[0] if "1+" in axes else raw[2])
        (gradient,) = torch.autograd.grad(best, given)
        np.testing.assert_allclose(found[row], (gradient * given).detach()[0], rtol=1e-6, atol=1e-9)


def segmenting(ending=None, classes=3):
    def forward(net, x):
        scores = net.out(torch.relu(net.a(x)))
        return ending(scores) if ending else scores

    modules = {"a": nn.Conv2d(2, 4, 3, bias=False), "out": nn.Conv2d(4, classes, 1, bias=False)}
    return settle(Written(forward, **modules))


def mask_slowly(scores):
    """Return each class's mean over the pixels where it is the highest, or above 0 where it is alone; else over all."""
    rows = []
    for picture in scores.flatten(2).tolist():
        pixels = list(zip(*picture, strict=True))
        row = []
        for number in range(len(picture)):
            own = [p[number] for p in pixels if (p[0] > 0 if len(p) == 1 else p[number] == max(p))]
            row.append(sum(own) / len(own) if own else sum(p[number] for p in pixels) / len(pixels))
        rows.append(row)
    return np.array(rows)


@pytest.mark.parametrize(
    ("ending", "classes", "axes"),
    [
        (None, 3, ""),
        (lambda scores: scores.permute(0, 2, 3, 1), 3, ":pixels,classes"),
        (torch.sigmoid, 1, ""),
        (lambda scores: scores.softmax(1), 3, ""),
        (lambda scores: scores.permute(0, 2, 3, 1).softmax(-1), 3, ":pixels,classes"),
    ],
)
def test_the_mean_over_the_mask_of_each_class(ending, classes, axes):
    network, plain = segmenting(ending, classes), segmenting(None, classes)
    with torch.no_grad():
        raw = plain(IMAGES)
    softmax = ending is not None and "softmax" in ending.__code__.co_names if hasattr(ending, "__code__") else False
    raw = raw - raw.mean(1, keepdim=True) if softmax else raw
    expected = mask_slowly(raw)
    with explaining(network, f"mean-mask{axes}"), torch.no_grad():
        np.testing.assert_allclose(network(IMAGES), expected, rtol=1e-9, atol=1e-9)
    found = idc.relevance(network, IMAGES, ["input", "a"], "z", explain=f"mean-mask{axes}", target=0)
    for layer in ("input", "a"):
        np.testing.assert_allclose(total(found[layer]), expected[:, 0], rtol=1e-6, atol=1e-9)


# A class that is predicted at no pixel never has the highest score; of one sigmoid, a picture with no pixel of the
# thing has a score below 0.
def test_a_class_that_is_nowhere_does_not_win():
    scores = torch.full((1, 3, 2, 2), -5.0)
    scores[0, 0], scores[0, 1] = torch.tensor([[-1.0, -1], [-1, -9]]), -2.0
    network = Written(lambda net, x: x)
    with explaining(network, "mean-mask"):
        torch.testing.assert_close(network(scores), torch.tensor([[-1.0, -2, -5]]))
        assert network(scores[:, 2:]).item() == -5


def test_a_thing_on_few_pixels_is_predicted():
    network = Written(lambda net, x: x.sigmoid())
    scores = torch.full((2, 1, 4, 4), -3.0)
    scores[1, 0, 2, 2] = 2.0
    with explaining(network, "mean-mask"):
        np.testing.assert_allclose(network(scores), [[-3], [2]], rtol=1e-5)
    with explaining(network, "mean-pixels"):  # the scores before the sigmoid here too
        np.testing.assert_allclose(network(scores), [[-3], [-3 + 5 / 16]], rtol=1e-5)


def test_probabilities_beyond_the_last_digit_stay_finite():
    network = Written(lambda net, x: x.sigmoid())
    scores = torch.tensor([[[-200.0, -40], [90, 3]]])
    with explaining(network, "best-box:classes,boxes"):
        found = network(scores)
    assert torch.isfinite(found).all()
    assert found[0, 0] == pytest.approx(-40, rel=1e-4)
    assert found[0, 1] > 16


@pytest.mark.parametrize(
    ("shape", "counts", "axes"),
    [
        ((2, 84, 8400), (80,), "4+classes,boxes"),
        ((2, 25200, 85), (80,), "boxes,5+classes"),
        ((2, 300, 80), (80,), "boxes,classes"),
        ((2, 84, 8400), (80, 3), "4+classes,boxes"),
        ((2, 84, 8400), (0, 80), "4+classes,boxes"),
        ((2, 5, 8400), (2,), "4+classes,boxes"),
        ((2, 100, 92), (91,), None),
        ((2, 25200, 6), (2,), None),
        ((2, 84, 8400), (3,), None),
        ((2, 84), (80,), None),
    ],
)
def test_axes_follow_from_the_number_of_classes_where_only_one_form_fits(shape, counts, axes):
    found = found_axes("boxes", shape, counts)
    assert axes == (found and str(found))


@pytest.mark.parametrize("text", [*FORMS, "5+classes,boxes", "classes+1,boxes"])
def test_axes_are_written_as_they_are_read(text):
    assert str(Axes.read(text, "boxes")) == text


def test_what_is_not_said_is_asked_and_each_line_works():
    network = detector("boxes,5+classes")
    with pytest.raises(ModelError, match=r"array of shape \(n, 25, 8\), .*not known where the classes are") as asked:
        idc.relevance(network, IMAGES, ["a"], explain="best-box")
    lines = [part.split(" (")[0] for part in str(asked.value).split("--explain ")[1:]]
    assert lines[:2] == ["best-box:boxes,5+classes", "best-box:boxes,classes"]
    for line in lines:
        classes = Axes.read(line.partition(":")[2], "boxes").classes((4, 25, 8))
        with explaining(network, line), torch.no_grad():
            assert network(IMAGES).shape == (4, classes)
    assert "(3 classes; YOLO 5 to 7, YOLOX)" in str(asked.value)
    assert not network._forward_pre_hooks


@pytest.mark.parametrize(
    ("explain", "kind", "said"),
    [
        ("best-box:boxes", SettingError, "axes are written 4.classes,boxes, .*; 'boxes' is none"),
        ("best-box:classes,pixels", SettingError, "axes are written 4.classes,boxes"),
        ("mean-pixels:4+classes,pixels", SettingError, "axes are written classes,pixels, pixels,classes"),
        ("mean-tokens:boxes,classes", SettingError, "explain must be"),
        ("best-box:boxes,5+classes", ModelError, r"\(boxes,5\+classes\), n of them; .*shape \(1, 3, 5"),
        ("best-box", ModelError, r"Say it: --explain best-box:classes,boxes \(3 classes\), --explain "),
    ],
)
def test_mistakes(explain, kind, said):
    network = segmenting()
    with pytest.raises(kind, match=said):
        idc.relevance(network, IMAGES, ["a"], explain=explain)
    assert not network._forward_hooks


def test_an_output_without_boxes_is_told_what_to_do():
    network = Written(lambda net, x: net.a(x).mean((2, 3)), a=nn.Conv2d(2, 4, 3)).double()
    with pytest.raises(ModelError, match=r"expected an axis of boxes and one of classes\. Take the output .* --output"):
        idc.relevance(network, IMAGES, ["a"], explain="best-box")


# A head of YOLO as it is, (n, anchors, rows, columns, 5 + classes): all axes but the last are boxes.
def test_boxes_may_lie_on_several_axes():
    network = Written(lambda net, x: x)
    scores = torch.randn(2, 3, 4, 4, 7, generator=torch.Generator().manual_seed(0))
    with explaining(network, "best-box:boxes,5+classes"):
        found = network(scores)
    one, both = scores[..., 4:5].sigmoid(), scores[..., 5:].sigmoid()
    torch.testing.assert_close(found, (one * both).logit().amax((1, 2, 3)))


def test_a_pass_that_fails_leaves_nothing_behind():
    network = segmenting()
    with explaining(network, "mean-mask"):
        with pytest.raises(RuntimeError):
            network(IMAGES[:, :1])
        assert not torch.overrides._get_current_function_mode_stack()
        assert network(IMAGES).shape == (4, 3)


def test_what_is_explained_is_said():
    assert said_of("best-box:boxes,5+classes") == "each class's score in its best box (boxes,5+classes)"
    assert "places and sizes of boxes" in meaning_of("mean-boxes")
    assert "outlines" in meaning_of("mean-mask")
    assert meaning_of("mean-tokens") == meaning_of(max) == ""
