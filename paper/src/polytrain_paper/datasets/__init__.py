"""Loaders of the digit data sets, with a data home, checksums and downloads."""

from polytrain_paper.datasets._files import DataFileError, DataNotFoundError, get_data_home
from polytrain_paper.datasets._images import ImageData
from polytrain_paper.datasets.bundled import load_digits_images
from polytrain_paper.datasets.mnist import load_mnist
from polytrain_paper.datasets.usps import load_usps

__all__ = [
    "DataFileError",
    "DataNotFoundError",
    "ImageData",
    "get_data_home",
    "load_digits_images",
    "load_mnist",
    "load_usps",
]
