"""Small files in the formats of the real ones."""

import numpy as np

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (5, 28, 28), dtype=np.uint8)
LABELS = np.array([5, 0, 4, 1, 7], dtype=np.uint8)


def as_idx(values):
    return bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape) + values.tobytes()


def usps_text(labels):
    pixels = " ".join(["-1.000", "0.5", "1.000"] + ["0.250"] * 253)
    return "".join(f"{label:.1f} {pixels}\n" for label in labels).encode()


def mnist_files():
    return {
        "train-images-idx3-ubyte": as_idx(IMAGES),
        "train-labels-idx1-ubyte": as_idx(LABELS),
        "t10k-images-idx3-ubyte": as_idx(IMAGES[:3]),
        "t10k-labels-idx1-ubyte": as_idx(LABELS[:3]),
    }


def usps_files():
    return {"zip.train": usps_text([3, 1, 4, 1]), "zip.test": usps_text([9, 0])}
