"""All networks by name. The list needs no torch: an entry imports the file of its network when it is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, cast

from idc_core.errors import ModelError
from idc_core.lrp.explained import Explain, checked
from idc_core.lrp.layer_parts import CLASS, HEADS, part_of_layer
from idc_core.models.card import WEIGHTS_FOLDER, ModelCard, Task
from idc_core.models.entry import ModelEntry, Recipe
from idc_core.models.own import OwnModel

if TYPE_CHECKING:
    from torch.nn import Module

    from idc_core.models.network import Network

_LECUN = (
    "Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, Gradient-based learning applied to document recognition, "
    "Proceedings of the IEEE 86(11), 1998"
)
_DEEPXPLORE = (
    "K. Pei, Y. Cao, J. Yang, S. Jana, DeepXplore: Automated Whitebox Testing of Deep Learning Systems, SOSP 2017"
)
_DEEPIMPORTANCE = (
    "S. Gerasimou, H. F. Eniser, A. Sen, A. Cakan, Importance-Driven Deep Learning System Testing, ICSE 2020"
)


@dataclass(frozen=True)
class _LeNet:
    """What tells the LeNets apart."""

    number: int
    channels: tuple[int, int]
    hidden: tuple[int, ...]
    default_layer: str
    same_parameters: int
    valid_parameters: int

    @property
    def layers(self) -> tuple[str, ...]:
        dense = (f"fc{number}" for number in range(1, len(self.hidden) + 1))
        return ("conv1", "pool1", "conv2", "pool2", *dense, "logits")

    def built_by(self, padding: int) -> Callable[[], Network]:
        return partial(_network, "lenet", "LeNet", self.channels, self.hidden, padding)


_LENETS = (
    _LeNet(1, (4, 12), (), "conv2", 7_206, 3_246),
    _LeNet(4, (6, 16), (84,), "fc1", 69_362, 25_010),
    _LeNet(5, (6, 16), (120, 84), "fc2", 107_786, 44_426),
)
_LENET_RECIPES = {
    "digits": Recipe(
        "adamw",
        3e-3,
        batch=32,
        epochs=20,
        note="Adam with a one-cycle schedule instead of the paper's Adadelta: 1,257 images give few steps.",
    ),
    "mnist": Recipe(
        "adamw",
        3e-3,
        batch=128,
        epochs=10,
        note="Adam with a one-cycle schedule instead of the paper's Adadelta (learning rate 1.0, batch 256).",
    ),
}
_DATA_LABELS = {"digits": "digits", "mnist": "MNIST"}

_COMPARED = 3
"""Networks that are compared unless others are named."""


def _trained_lenet(shape: _LeNet, dataset: str) -> ModelEntry:
    return ModelEntry(
        name=f"lenet{shape.number}-{dataset}",
        label=f"LeNet-{shape.number} on {_DATA_LABELS[dataset]}",
        help=f"{shape.same_parameters:,} parameters, trained on {_DATA_LABELS[dataset]}.",
        build=shape.built_by(2),
        layers=shape.layers,
        dataset=dataset,
        default_layer=shape.default_layer,
        parameters=shape.same_parameters,
        recipe=_LENET_RECIPES[dataset],
        citation=_LECUN,
        licence="MIT",
    )


def _published_lenet(shape: _LeNet, name: str, paper: str, *, same: bool) -> ModelEntry:
    parameters = shape.same_parameters if same else shape.valid_parameters
    return ModelEntry(
        name=name,
        label=f"LeNet-{shape.number} of {'DeepXplore' if same else 'DeepImportance'}",
        help=f"The weights published with the paper: LeNet-{shape.number}, {parameters:,} parameters, MNIST.",
        build=shape.built_by(2 if same else 0),
        layers=shape.layers,
        dataset="mnist",
        default_layer=shape.default_layer,
        parameters=parameters,
        recipe=None,
        citation=paper,
        licence="MIT",
    )


def _blocks(count: int, *parts: str) -> tuple[str, ...]:
    """Return the layers of a transformer's blocks: units of the dense layers, the block, and parts of what it gives."""
    names = (f"block{number}" for number in range(1, count + 1))
    return tuple(
        layer
        for name in names
        for layer in (f"{name}.mlp.hidden", name, *(part_of_layer(name, part) for part in parts))
    )


def _network(module: str, name: str, *arguments: object) -> Network:
    """Build a network, whose file is imported only now: it needs torch."""
    built: Network = getattr(import_module(f"idc_core.models.{module}"), name)(*arguments)
    return built


_ENTRIES = (
    *(_trained_lenet(shape, dataset) for dataset in ("digits", "mnist") for shape in _LENETS),
    *(
        _published_lenet(shape, f"deepxplore-model{position}", _DEEPXPLORE, same=True)
        for position, shape in enumerate(_LENETS, start=1)
    ),
    *(_published_lenet(shape, f"deepimportance-lenet{shape.number}", _DEEPIMPORTANCE, same=False) for shape in _LENETS),
    ModelEntry(
        name="convnet-cifar10",
        label="ConvNet on CIFAR-10",
        help="The paper's convolutional network with 952,234 parameters, trained on CIFAR-10.",
        build=partial(_network, "convnet", "ConvNet"),
        layers=("conv1", "conv2", "pool1", "conv3", "conv4", "pool2", "fc1", "fc2", "logits"),
        dataset="cifar10",
        default_layer="fc2",
        parameters=952_234,
        recipe=Recipe(
            "adamw",
            2e-3,
            batch=128,
            epochs=24,
            augmentation="mirror-shift",
            note="Adam with a one-cycle schedule and mirrored, shifted images instead of the paper's RMSprop "
            "(1e-4, batch 32, 40 epochs): as accurate in fewer epochs.",
        ),
        citation=_DEEPIMPORTANCE,
        licence="MIT",
    ),
    ModelEntry(
        name="vit-cifar10",
        label="ViT on CIFAR-10",
        help="A small vision transformer with a class token and 376,810 parameters, trained on CIFAR-10.",
        build=partial(_network, "vit", "ViT"),
        layers=("stem1", "stem2", "patches", *_blocks(4, CLASS, HEADS), "norm", "logits"),
        dataset="cifar10",
        default_layer="norm",
        parameters=376_810,
        recipe=Recipe(
            "adamw",
            2e-3,
            batch=128,
            epochs=24,
            augmentation="mirror-shift",
            weight_decay=0.05,
            note="Small, with few epochs, to be trained in half an hour on one core: vision transformers reach more "
            "with more of both.",
        ),
        citation="A. Dosovitskiy et al., An Image Is Worth 16x16 Words: Transformers for Image Recognition at Scale, "
        "ICLR 2021",
        licence="MIT",
    ),
    ModelEntry(
        name="dave2-udacity",
        label="Dave-2 on Udacity",
        help="NVIDIA's steering network with 2,116,983 parameters, trained on one drive of the Udacity car.",
        build=partial(_network, "dave2", "Dave2"),
        layers=("conv1", "conv2", "conv3", "conv4", "conv5", "fc1", "fc2", "fc3", "fc4", "steering"),
        dataset="udacity",
        default_layer="fc3",  # half of the ten units of fc4 never fire
        parameters=2_116_983,
        recipe=Recipe(
            "adamw",
            5e-4,
            batch=64,
            epochs=20,
            augmentation="mirror-steering",
            note="Adam with a one-cycle schedule and mirrored, shifted frames instead of the paper's Adadelta "
            "(learning rate 1.0, batch 256, 10 epochs); chosen on 4 of the 15 training blocks of time.",
        ),
        citation="M. Bojarski et al., End to End Learning for Self-Driving Cars, arXiv:1604.07316, 2016",
        licence="MIT",
        task="regression",
    ),
    ModelEntry(
        name="textcnn-20newsgroups",
        label="Text CNN on 20 Newsgroups",
        help="A small convolutional network for text, trained on six of the twenty newsgroups.",
        build=partial(_network, "textcnn", "TextCNN"),
        layers=("conv1", "conv2", "conv3", "pool1", "pool2", "pool3", "logits"),
        dataset="20newsgroups",
        default_layer="conv2",
        parameters=666_054,
        recipe=Recipe(
            "adamw",
            4e-3,
            batch=32,
            epochs=20,
            augmentation="drop-words",
            weight_decay=0.01,
            note="Epochs, learning rate and dropout were chosen on 700 messages held out from the training split.",
        ),
        citation="Y. Kim, Convolutional Neural Networks for Sentence Classification, EMNLP 2014",
        licence="MIT",
    ),
    ModelEntry(
        name="texttransformer-20newsgroups",
        label="Text transformer on 20 Newsgroups",
        help="A small transformer for text, trained on six of the twenty newsgroups.",
        build=partial(_network, "texttransformer", "TextTransformer"),
        layers=(*_blocks(2, HEADS), "norm", "logits"),
        dataset="20newsgroups",
        default_layer="norm",
        parameters=528_006,
        recipe=Recipe(
            "adamw",
            2e-3,
            batch=32,
            epochs=15,
            augmentation="drop-words",
            weight_decay=0.01,
            note="As for the convolutional network for text, with half the learning rate and fewer epochs.",
        ),
        citation="A. Vaswani et al., Attention Is All You Need, NeurIPS 2017",
        licence="MIT",
    ),
    ModelEntry(
        name="charlstm-sql",
        label="Character LSTM on SQL",
        help="A recurrent network with 512 units that predicts the next character of SQL strings.",
        build=partial(_network, "charlstm", "CharLSTM", 512),
        layers=("lstm", "logits"),
        dataset="sql",
        default_layer="lstm",
        parameters=1_153_697,
        recipe=Recipe(
            "adamw",
            2e-3,
            batch=128,
            epochs=6,
            note="Adam with a one-cycle schedule; 30 characters are read for each one that is predicted.",
        ),
        citation="T. Sellam et al., DeepBase: Deep Inspection of Neural Networks, SIGMOD 2019",
        licence="MIT",
    ),
)

MODELS: dict[str, ModelEntry] = {entry.name: entry for entry in _ENTRIES}
"""Every network by its name, in the order in which menus show them."""


def network(
    name: str,
    label: str = "",
    help: str = "",
    *,
    data: str,
    layer: str | None = None,
    layers: Sequence[str] | None = None,
    task: Task | None = None,
    explain: Explain | None = None,
    output: str | int = "",
    class_names: Sequence[str] = (),
    citation: str = "",
    licence: str = "",
) -> Callable[[Callable[[], Module]], Callable[[], Module]]:
    """Put a network into `MODELS` that the decorated function builds, weights included; the function is unchanged.

    >>> @network("my-resnet", data="my-photos", layer="layer4")
    ... def build():
    ...     return MyResNet()  # any torch.nn.Module whose outputs are scores before any softmax

    `data` names the data set that it takes, whose "train" split neurons and clusters are learnt from. `layer` is a name
    of `named_modules()`, analysed unless another one is chosen, by default the last hidden layer with weights. `layers`
    are all that are offered, in forward order, by default those with weights, poolings, and blocks that sum branches.
    `task` is by default that of the data. People see `label`, by default the name. Scores in a dictionary, a record or
    a tuple are found: `logits`, `scores`, else the first tensor. Where they are more than one row per input, `explain`
    says which are meant: "mean-pixels", "last-token" or others of `idc_core.lrp.explained.explaining`, or a function.

    `output` is the name or number of the one output that scores are read from, of a network with several; by default
    that whose width and last operation are those of scores. `class_names` are what the outputs are called, in their
    order, where this is not the order of the data's classes; by default what the network says: its own `class_names`,
    `names` or `config.id2label`.
    """
    chosen = None if explain is None else checked(explain)

    def decorate(build: Callable[[], Module]) -> Callable[[], Module]:
        MODELS[name] = OwnModel(
            name=name,
            label=label or name,
            help=help,
            build=cast("Callable[[], Network]", build),
            layers=tuple(layers or ()),
            dataset=data,
            default_layer=layer or "",
            citation=citation,
            licence=licence,
            task=cast("Task", task),
            explain=chosen,
            output=str(output),
            output_names=tuple(map(str, class_names)),
        )
        return build

    return decorate


def shipped_card(name: str) -> ModelCard | None:
    """Return the card of a network whose weights come with the project, without reading these; None for others."""
    path = WEIGHTS_FOLDER / f"{name}.json"
    return None if isinstance(MODELS[name], OwnModel) or not path.exists() else ModelCard.read(path)


def find_entry(name: str) -> ModelEntry:
    """Return the registry entry of a network; ModelError, listing the names, if there is none."""
    if name not in MODELS:
        raise ModelError(f"There is no model {name!r}; the models are {', '.join(MODELS)}.")
    return MODELS[name]


def companions(name: str) -> tuple[str, ...]:
    """Return a network and others that were trained here for the same task on the same data, at most `_COMPARED`."""
    own = find_entry(name)
    others = [
        key for key, entry in MODELS.items() if key != name and entry.dataset == own.dataset and not entry.published
    ]
    return (name, *others[: _COMPARED - 1])
