"""Networks from ONNX files: one torch module per node."""

from idc_core.models.onnx.importing import build_network, load_onnx
from idc_core.models.onnx.network import OnnxNetwork
from idc_core.models.onnx.registry import OPERATORS

__all__ = ["OPERATORS", "OnnxNetwork", "build_network", "load_onnx"]
