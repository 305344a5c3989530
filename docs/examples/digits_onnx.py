"""Train a network of scikit-learn on handwritten digits; save it as ONNX, and its data: `python digits_onnx.py`."""

from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

pixels, targets = load_digits(return_X_y=True)
pixels = (pixels / 16).astype(np.float32)
x_train, x_test, y_train, y_test = train_test_split(pixels, targets, test_size=0.3, random_state=0)
net = MLPClassifier((48, 24), max_iter=400, random_state=0).fit(x_train, y_train)
print(f"accuracy {net.score(x_test, y_test):.1%}")
Path("digits.onnx").write_bytes(to_onnx(net, x_train[:1], options={"zipmap": False}).SerializeToString())
np.savez("digits.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
