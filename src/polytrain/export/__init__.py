"""Export fitted models in forms that run without polytrain: ONNX graphs and C source."""

from polytrain.export.c_source import to_c
from polytrain.export.onnx_model import register_onnx_converters, to_onnx

__all__ = ["register_onnx_converters", "to_c", "to_onnx"]
