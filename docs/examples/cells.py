"""Write a table as Excel does in half of Europe, train scikit-learn on it, save ONNX: `python cells.py`."""

from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_breast_cancer
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

table = load_breast_cancer(as_frame=True)
inputs = table.data.astype(np.float32)
names = table.target.map({0: "malignant", 1: "benign"})
is_test = np.arange(len(inputs)) % 4 == 0
written = inputs.assign(diagnosis=names, split=np.where(is_test, "test", "train"))
written.to_csv("cells.csv", sep=";", decimal=",", index=False, encoding="utf-8-sig")

net = make_pipeline(StandardScaler(), MLPClassifier((32, 16), max_iter=500, random_state=0))
net.fit(inputs[~is_test].to_numpy(), names[~is_test])
print(f"accuracy {net.score(inputs[is_test].to_numpy(), names[is_test]):.1%}")
Path("cells.onnx").write_bytes(to_onnx(net, inputs[:1].to_numpy(), options={"zipmap": False}).SerializeToString())
