"""Train a small BERT of Hugging Face on newsgroup messages in a CSV file: `python bert.py`."""

import pandas as pd
import torch
from tokenizers import BertWordPieceTokenizer
from torch.nn.functional import cross_entropy
from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

import idc_core as idc

torch.manual_seed(0)
parts = {split: idc.load_dataset("20newsgroups", split) for split in ("train", "test")}
names = parts["train"].class_names
pd.concat(
    pd.DataFrame({"text": data.texts, "label": [names[target] for target in data.targets], "split": split})
    for split, data in parts.items()
).to_csv("messages.csv", index=False)

words = BertWordPieceTokenizer()
words.train_from_iterator(parts["train"].texts, vocab_size=6000)
tokenizer = BertTokenizerFast(tokenizer_object=words._tokenizer, model_max_length=96)
config = BertConfig(
    vocab_size=6000,
    hidden_size=96,
    intermediate_size=192,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=96,
    id2label=dict(enumerate(names)),
    label2id={name: number for number, name in enumerate(names)},
)
net = BertForSequenceClassification(config)


def tokens(texts):
    return tokenizer(list(texts), padding="max_length", truncation=True, max_length=96, return_tensors="pt")


taken, targets = tokens(parts["train"].texts), torch.tensor(parts["train"].targets)
optimizer = torch.optim.AdamW(net.parameters(), 1e-3)
for _epoch in range(8):
    for batch in torch.randperm(len(targets)).split(32):
        optimizer.zero_grad()
        cross_entropy(net(**{name: value[batch] for name, value in taken.items()}).logits, targets[batch]).backward()
        optimizer.step()
net.eval()
with torch.no_grad():
    right = net(**tokens(parts["test"].texts)).logits.argmax(1) == torch.tensor(parts["test"].targets)
print(f"accuracy {right.float().mean():.1%}")
net.save_pretrained("bert")
tokenizer.save_pretrained("bert")
