"""Train a small vision transformer of Hugging Face on class folders and save it as a folder: `python vit.py`."""

import torch
from torch.nn.functional import cross_entropy
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

import idc_core as idc

torch.manual_seed(0)
train, test = (idc.load_dataset("photos", split) for split in ("train", "test"))
config = ViTConfig(
    image_size=32,
    patch_size=4,
    hidden_size=96,
    intermediate_size=192,
    num_hidden_layers=4,
    num_attention_heads=4,
    id2label=dict(enumerate(train.class_names)),
    label2id={name: number for number, name in enumerate(train.class_names)},
)
net = ViTForImageClassification(config)
pictures, targets = 2 * torch.tensor(train.inputs) - 1, torch.tensor(train.targets)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3, weight_decay=0.05)
for _epoch in range(15):
    for batch in torch.randperm(len(targets)).split(64):
        optimizer.zero_grad()
        mirrored = pictures[batch].flip(3) if torch.rand(()) < 0.5 else pictures[batch]
        cross_entropy(net(mirrored).logits, targets[batch]).backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    right = net(2 * torch.tensor(test.inputs) - 1).logits.argmax(1) == torch.tensor(test.targets)
print(f"accuracy {right.float().mean():.1%}")
net.save_pretrained("vit")
ViTImageProcessorPil(size={"height": 32, "width": 32}).save_pretrained("vit")  # scales pixels to -1..1
