"""The operators that are known, grouped by kind; importing the package enters them."""

from idc_core.models.onnx.operators import (  # noqa: F401 - they enter operators
    activation,
    arithmetic,
    attention,
    control,
    convolution,
    indexing,
    linear,
    normalisation,
    pooling,
    recurrent,
    reduction,
    resizing,
    shape,
)
