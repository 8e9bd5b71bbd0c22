"""From images to feature vectors: scikit-learn transformers for handwritten characters."""

from polytrain_paper.features.canvas import FitToCanvas
from polytrain_paper.features.cnn import DigitCNN
from polytrain_paper.features.deskew import Deskew
from polytrain_paper.features.distort import Distort
from polytrain_paper.features.fourier import LowFrequencyDFT
from polytrain_paper.features.pipelines import FEATURE_KINDS, make_digit_features
from polytrain_paper.features.virtual import VirtualExamples

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
