"""Networks of other libraries that a person gives as objects: how to save them in a form that can be read."""

from __future__ import annotations

KERAS = 'model.export("net.onnx", format="onnx")'
LEARN = 'skl2onnx.to_onnx(net, inputs[:1]).SerializeToString(), written to "net.onnx"'

_LIBRARIES = {
    "keras": ("a network of Keras", KERAS),
    "tensorflow": ("a network of TensorFlow", 'tf2onnx.convert.from_keras(model, output_path="net.onnx")'),
    "sklearn": ("a model of scikit-learn", LEARN),
    "onnx": ("an ONNX model", 'onnx.save(model, "net.onnx")'),
    "onnxruntime": ("a session of onnxruntime", "the path of its .onnx file"),
}


def said_foreign(model: object) -> str:
    """Say of which library an object is and how to save it as ONNX, as a sentence; "" where that is not known."""
    kinds = [kind.__module__.partition(".")[0] for kind in type(model).__mro__]
    library = next((name for name in ("tf_keras", *_LIBRARIES) if name in kinds), "").removeprefix("tf_")
    if not library:
        return ""
    what, line = _LIBRARIES[library]
    return f" It is {what}: export it to ONNX by {line}, and give the path of that file (idc_core.load_model)."
