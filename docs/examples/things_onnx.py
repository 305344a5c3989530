"""Train a network with the 1,000 outputs of ImageNet on ten of them; save it as ONNX: `python things_onnx.py`."""

import json

import onnx
import torch
from torch import nn
from torch.nn.functional import cross_entropy

import idc_core as idc

# The places of the ten among the 1,000 classes of ImageNet; the others keep a number for a name.
PLACES = {
    "crossword puzzle": 918, "envelope": 549, "Granny Smith": 948, "lemon": 951, "maze": 646, "orange": 950,
    "ping-pong ball": 722, "traffic light": 920, "window screen": 904, "banana": 954,
}  # fmt: skip
NAMES = [f"class {number}" for number in range(1000)]
for name, place in PLACES.items():
    NAMES[place] = name

torch.manual_seed(0)
train, test = (idc.load_dataset("things", split) for split in ("train", "test"))
outputs = torch.tensor([PLACES[name] for name in train.class_names])
net = nn.Sequential(
    *(
        nn.Conv2d(3, 16, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1),
        nn.ReLU(),
        nn.Conv2d(32, 48, 3, 2, 1),
        nn.ReLU(),
    ),
    *(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(432, 64), nn.ReLU(), nn.Linear(64, 1000), nn.Softmax(1)),
)
pictures, targets = torch.tensor(train.inputs), outputs[torch.tensor(train.targets)]
optimizer = torch.optim.Adam(net.parameters(), 3e-3)
for _epoch in range(20):
    for batch in torch.randperm(len(targets)).split(50):
        optimizer.zero_grad()
        cross_entropy(net[:-1](pictures[batch]), targets[batch]).backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    right = net(torch.tensor(test.inputs)).argmax(1) == outputs[torch.tensor(test.targets)]
print(f"accuracy {right.float().mean():.1%}")
torch.onnx.export(net, (pictures[:2],), "things.onnx", dynamic_shapes=({0: torch.export.Dim("n")},), verbose=False)
model = onnx.load("things.onnx")
model.metadata_props.add(key="names", value=json.dumps(NAMES))
onnx.save(model, "things.onnx")
