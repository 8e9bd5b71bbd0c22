"""From images to feature vectors: scikit-learn transformers for handwritten characters."""

from polytrain.features.canvas import FitToCanvas
from polytrain.features.cnn import DigitCNN
from polytrain.features.deskew import Deskew
from polytrain.features.distort import Distort
from polytrain.features.fourier import LowFrequencyDFT
from polytrain.features.pipelines import FEATURE_KINDS, make_digit_features
from polytrain.features.virtual import VirtualExamples

__all__ = [
    "FEATURE_KINDS",
    "Deskew",
    "DigitCNN",
    "Distort",
    "FitToCanvas",
    "LowFrequencyDFT",
    "VirtualExamples",
    "make_digit_features",
]
