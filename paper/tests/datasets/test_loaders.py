"""The loaders on small stand-ins for the standard files, so that nothing needs to be downloaded."""

import gzip
import hashlib
import os

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from stand_ins import IMAGES, LABELS, as_idx, usps_text

from polytrain_paper.datasets import (
    DataFileError,
    DataNotFoundError,
    get_data_home,
    load_digits_images,
    load_mnist,
    load_usps,
)


def put_all(folder, contents, compress):
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in contents.items():
        if compress:
            (folder / f"{name}.gz").write_bytes(gzip.compress(content))
        else:
            (folder / name).write_bytes(content)


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("subfolder", ["", "mnist"])
def test_mnist_from_files(tmp_path, mnist_contents, subfolder, compress):
    put_all(tmp_path / subfolder, mnist_contents, compress)
    data = load_mnist(data_home=tmp_path, download=False)
    assert_allclose(data.train_images, IMAGES / np.float32(255), rtol=1e-6)
    assert_array_equal(data.train_labels, LABELS)
    assert len(data.test_images) == len(data.test_labels) == 3
    assert data.train_images.dtype == np.float32
    assert data.train_labels.dtype == np.int64
    assert data.image_shape == (28, 28)
    assert repr(data) == "<MNIST: 5 training and 3 test images of 28x28 pixels>"


@pytest.mark.parametrize("compress", [True, False])
@pytest.mark.parametrize("subfolder", ["", "usps"])
def test_usps_from_files(tmp_path, usps_contents, subfolder, compress):
    put_all(tmp_path / subfolder, usps_contents, compress)
    data = load_usps(data_home=tmp_path, download=False)
    assert data.train_images.shape == (4, 16, 16)
    assert data.train_images.min() == 0
    assert data.train_images.max() == 1
    assert_array_equal(data.test_labels, [9, 0])


def test_data_home_is_argument_then_variable_then_cache(tmp_path, monkeypatch, mnist_contents):
    put_all(tmp_path / "argument", mnist_contents, compress=True)
    monkeypatch.setenv("POLYTRAIN_DATA", str(tmp_path / "variable"))
    assert get_data_home(tmp_path / "argument") == tmp_path / "argument"
    assert get_data_home() == tmp_path / "variable"
    load_mnist(data_home=tmp_path / "argument", download=False)
    monkeypatch.setenv("POLYTRAIN_DATA", str(tmp_path / "argument"))
    load_mnist(download=False)
    monkeypatch.delenv("POLYTRAIN_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert get_data_home() == tmp_path / "cache" / "polytrain"
    monkeypatch.setattr("sys.platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert get_data_home() == tmp_path / "local" / "polytrain"
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert get_data_home() == tmp_path / "Library" / "Caches" / "polytrain"


def test_missing_files_are_named_with_their_place(tmp_path, mnist_contents):
    del mnist_contents["t10k-labels-idx1-ubyte"]
    put_all(tmp_path, mnist_contents, compress=False)
    with pytest.raises(DataNotFoundError) as caught:
        load_mnist(data_home=tmp_path, download=False)
    message = str(caught.value)
    assert "MNIST: t10k-labels-idx1-ubyte.gz not found" in message
    assert (
        f"Put t10k-labels-idx1-ubyte.gz (or the decompressed files, without .gz) into {tmp_path / 'mnist'}" in message
    )
    assert "https://" in message
    assert "POLYTRAIN_DATA" in message
    assert "train-images" not in message


def damaged_gzip(content):
    raw = bytearray(gzip.compress(content))
    raw[len(raw) // 2] ^= 0xFF
    return bytes(raw)


@pytest.mark.parametrize(
    ("name", "damage", "reason"),
    [
        ("train-images-idx3-ubyte.gz", lambda c: gzip.compress(c)[:-20], "gzip stream is truncated after"),
        ("train-images-idx3-ubyte.gz", damaged_gzip, "gzip stream is corrupt|truncated"),
        (
            "train-images-idx3-ubyte.gz",
            lambda c: b"<html>not found</html>",
            r"not a gzip file \(it starts with b'<h'\)",
        ),
        ("train-images-idx3-ubyte.gz", lambda c: b"", "not a gzip file"),
        ("train-images-idx3-ubyte", lambda c: c[:-1], "is truncated: 3,935 of 3,936 bytes"),
        ("train-images-idx3-ubyte", lambda c: c + b"0", "announces 5 x 28 x 28 values, but 3,921 bytes follow"),
        ("train-images-idx3-ubyte", lambda c: b"\0\0\x0d" + c[3:], "it starts with 00 00 0d 03, but .* 00 00 08 03"),
        ("train-labels-idx1-ubyte", lambda c: as_idx(IMAGES), "it starts with 00 00 08 03, but .* 00 00 08 01"),
        ("train-labels-idx1-ubyte", lambda c: c[:-1] + b"\x0a", "it holds the label 10; labels are 0 to 9"),
        (
            "train-labels-idx1-ubyte",
            lambda c: c[:-1] + b"\x09",
            "SHA-256 .* but the standard train-labels-idx1-ubyte has",
        ),
    ],
)
def test_wrong_mnist_files_are_refused_with_the_reason(tmp_path, mnist_contents, name, damage, reason):
    content = mnist_contents.pop(name.removesuffix(".gz"))
    put_all(tmp_path, mnist_contents, compress=True)
    (tmp_path / name).write_bytes(damage(content))
    with pytest.raises(DataFileError, match=f"{name} is refused: .*({reason})") as caught:
        load_mnist(data_home=tmp_path)
    assert "delete it to have it downloaded" in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text.replace(b"0.5", b"zero", 1), "not a table of numbers"),
        (lambda text: b"".join(line[:-5] + b"\n" for line in text.splitlines()) + b"\n" * 99, "lines hold 256 numbers"),
        (lambda text: text.replace(b"3.0 ", b"3.5 ", 1), "the label 3.5; labels are 0 to 9"),
        (lambda text: text.replace(b"0.5", b"1.5", 1), r"grey values outside \[-1, 1\]"),
        (lambda text: text.replace(b"0.5", b"nan", 1), r"grey values outside \[-1, 1\]"),
        (lambda text: text.replace(b"0.5", b"0.4", 1), "SHA-256"),
        (lambda text: text[: len(text) // 2], "truncated"),
    ],
)
def test_wrong_usps_files_are_refused_with_the_reason(tmp_path, usps_contents, damage, reason):
    put_all(tmp_path, usps_contents, compress=True)
    (tmp_path / "zip.train.gz").write_bytes(gzip.compress(damage(usps_text([3, 1, 4, 1]))))
    with pytest.raises(DataFileError, match=reason):
        load_usps(data_home=tmp_path)


def test_bundled_digits_have_a_fixed_split():
    data = load_digits_images()
    assert data.train_images.shape == (1197, 8, 8)
    assert data.test_images.shape == (600, 8, 8)
    assert data.train_images.min() == 0
    assert data.train_images.max() == 1
    assert np.bincount(data.test_labels).min() >= 55
    digest = hashlib.sha256(data.test_labels.tobytes()).hexdigest()
    assert digest == hashlib.sha256(load_digits_images().test_labels.tobytes()).hexdigest()


needs_files = pytest.mark.skipif(
    not os.environ.get("POLYTRAIN_DATA"), reason="set POLYTRAIN_DATA to a folder with the MNIST and USPS files"
)


@needs_files
def test_real_mnist():
    data = load_mnist(download=False)
    assert data.train_images.shape == (60000, 28, 28)
    assert data.test_images.shape == (10000, 28, 28)
    assert_array_equal(data.train_labels[:5], [5, 0, 4, 1, 9])
    assert_allclose(data.train_images.mean(), 0.1307, atol=1e-4)


@needs_files
def test_real_usps():
    data = load_usps(download=False)
    assert data.train_images.shape == (7291, 16, 16)
    assert data.test_images.shape == (2007, 16, 16)
    assert_array_equal(data.train_labels[:5], [6, 5, 4, 7, 3])
