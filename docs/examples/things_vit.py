"""Train a vision transformer of Hugging Face whose labels have an order of its own: `python things_vit.py`."""

import torch
from torch.nn.functional import cross_entropy
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

import idc_core as idc

LABELS = (
    *("traffic_light", "Banana", "Orange", "Lemon", "granny_smith", "ping-pong_ball", "Envelope", "crossword_puzzle"),
    *("Maze", "window_screen"),
)

torch.manual_seed(0)
train, test = (idc.load_dataset("things", split) for split in ("train", "test"))
own = [label.lower().replace("_", " ") for label in LABELS]
outputs = torch.tensor([own.index(name.lower()) for name in train.class_names])
config = ViTConfig(
    image_size=48,
    patch_size=8,
    hidden_size=64,
    intermediate_size=128,
    num_hidden_layers=3,
    num_attention_heads=4,
    id2label=dict(enumerate(LABELS)),
    label2id={label: number for number, label in enumerate(LABELS)},
)
net = ViTForImageClassification(config)
pictures, targets = 2 * torch.tensor(train.inputs) - 1, outputs[torch.tensor(train.targets)]
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for _epoch in range(15):
    for batch in torch.randperm(len(targets)).split(50):
        optimizer.zero_grad()
        cross_entropy(net(pictures[batch]).logits, targets[batch]).backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    right = net(2 * torch.tensor(test.inputs) - 1).logits.argmax(1) == outputs[torch.tensor(test.targets)]
print(f"accuracy {right.float().mean():.1%}")
net.save_pretrained("things-vit")
ViTImageProcessorPil(size={"height": 48, "width": 48}).save_pretrained("things-vit")  # scales pixels to -1..1
