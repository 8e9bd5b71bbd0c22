import json
import pickle
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.signal import correlate2d
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import estimator_html_repr

from polytrain_paper.features import DigitCNN
from polytrain_paper.features.cnn import PACKAGED_N_FEATURES, WEIGHTS, Net, read_weights

LAYERS = ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "conv3.weight", "conv3.bias")


def random_layers(n_features, seed=0):
    rng = np.random.default_rng(seed)
    layers = []
    for shape in ((20, 1, 5, 5), (100, 20, 5, 5), (n_features, 100, 4, 4)):
        layers.append(rng.normal(size=shape).astype(np.float32) / np.sqrt(np.prod(shape[1:])).astype(np.float32))
        layers.append(0.1 * rng.normal(size=shape[0]).astype(np.float32))
    return layers


def random_images(n_images, seed=0):
    return np.random.default_rng(seed).random((n_images, 28, 28)).astype(np.float32)


def write_safetensors(path, tensors, **metadata):
    """The format, written by hand."""
    header, body = {"__metadata__": metadata}, b""
    for name, values in tensors.items():
        raw = np.ascontiguousarray(values).tobytes()
        header[name] = {"dtype": "F32", "shape": values.shape, "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    encoded = json.dumps(header).encode()
    path.write_bytes(len(encoded).to_bytes(8, "little") + encoded + body)


def reference(image, layers):
    """The net on one image, map by map in float64."""
    weight1, bias1, weight2, bias2, weight3, bias3 = (np.asarray(layer, dtype=float) for layer in layers)

    def convolve(maps, weight, bias):
        return np.stack(
            [
                sum(correlate2d(one, kernel, mode="valid") for one, kernel in zip(maps, kernels, strict=True)) + shift
                for kernels, shift in zip(weight, bias, strict=True)
            ]
        )

    def pool(maps):
        n_maps, height, width = maps.shape
        return np.maximum(maps, 0).reshape(n_maps, height // 2, 2, width // 2, 2).max(axis=(2, 4))

    maps = pool(convolve(image[np.newaxis].astype(float), weight1, bias1))
    maps = pool(convolve(maps, weight2, bias2))
    return np.tanh(convolve(maps, weight3, bias3)).reshape(-1)


@pytest.mark.parametrize("n_features", [1, 7, 20])
def test_equals_the_slow_reference(n_features):
    layers, images = random_layers(n_features), random_images(3)
    expected = np.stack([reference(image, layers) for image in images])
    assert_allclose(Net.from_layers(*layers)(images), expected, atol=1e-5)


@pytest.mark.parametrize("n_features", PACKAGED_N_FEATURES)
def test_packaged_nets_equal_the_slow_reference(n_features):
    tensors, _ = read_weights(WEIGHTS / f"digit_cnn_d{n_features}.safetensors")
    images = random_images(2)
    expected = np.stack([reference(image, [tensors[name] for name in LAYERS]) for image in images])
    assert_allclose(DigitCNN(n_features).fit_transform(images), expected, atol=1e-5)


@pytest.mark.parametrize("n_features", PACKAGED_N_FEATURES)
def test_equals_pytorch(n_features):
    torch = pytest.importorskip("torch")
    tensors, _ = read_weights(WEIGHTS / f"digit_cnn_d{n_features}.safetensors")
    weight = {name: torch.from_numpy(values.copy()) for name, values in tensors.items()}
    images = random_images(300)
    convolve, pool = torch.nn.functional.conv2d, torch.nn.functional.max_pool2d
    with torch.inference_mode():
        maps = torch.from_numpy(images)[:, None]
        maps = pool(convolve(maps, weight["conv1.weight"], weight["conv1.bias"]).relu(), 2)
        maps = pool(convolve(maps, weight["conv2.weight"], weight["conv2.bias"]).relu(), 2)
        expected = convolve(maps, weight["conv3.weight"], weight["conv3.bias"]).tanh().flatten(1).numpy()
    assert_allclose(DigitCNN(n_features).fit_transform(images), expected, atol=1e-5)


def test_blocks_do_not_matter(monkeypatch):
    images = random_images(50)
    cnn = DigitCNN().fit(images)
    expected = cnn.transform(images)
    monkeypatch.setattr(DigitCNN, "_block_rows", 7)
    assert_allclose(cnn.transform(images), expected, atol=1e-5)


def test_layouts_and_dtypes():
    images = random_images(4)
    cnn = DigitCNN(25).fit(images)
    expected = cnn.transform(images)
    assert expected.dtype == np.float32
    assert_array_equal(cnn.transform(images.reshape(4, -1)), expected)
    assert_allclose(cnn.transform(np.asfortranarray(images)), expected, atol=1e-6)
    in_float64 = cnn.transform(images.astype(float))
    assert in_float64.dtype == np.float64
    assert_allclose(in_float64, expected, atol=1e-6)


def test_scikit_learn_conventions():
    images = random_images(3)
    cnn = DigitCNN(30)
    with pytest.raises(NotFittedError):
        cnn.transform(images)
    cnn.fit(images)
    assert cnn.n_features_in_ == 784
    assert clone(cnn).get_params() == {"n_features": 30, "weights": None}
    assert list(cnn.get_feature_names_out()[:2]) == ["digitcnn0", "digitcnn1"]
    assert len(cnn.get_feature_names_out()) == 30
    assert_array_equal(pickle.loads(pickle.dumps(cnn)).transform(images), cnn.transform(images))
    with pytest.raises(ValueError, match="NaN"):
        cnn.transform(np.full((1, 784), np.nan))
    with pytest.raises(ValueError, match="X has 783 features, but DigitCNN is expecting 784"):
        cnn.transform(np.ones((1, 783)))


def test_html_links_to_our_pages():
    address = "https://polytrain.readthedocs.io/en/stable/generated/polytrain_paper.features.DigitCNN.html"
    assert address in estimator_html_repr(DigitCNN())


def test_set_output():
    pytest.importorskip("pandas")
    table = DigitCNN().set_output(transform="pandas").fit_transform(random_images(2))
    assert list(table.columns) == [f"digitcnn{i}" for i in range(20)]


@pytest.mark.parametrize("X", [np.ones((2, 256)), np.ones((2, 16, 16)), np.ones((2, 14, 56))])
def test_other_sizes_are_refused_with_the_remedy(X):
    with pytest.raises(ValueError, match=r"needs images of 28x28 pixels.*put FitToCanvas before it"):
        DigitCNN().fit(X)


def test_unknown_numbers_of_features_are_named():
    with pytest.raises(ValueError, match=r"n_features must be one of \(20, 25, 30, 35, 40\), got 21"):
        DigitCNN(21).fit(random_images(1))


def test_own_weights(tmp_path):
    layers, path = random_layers(3), tmp_path / "own.safetensors"
    write_safetensors(path, dict(zip(LAYERS, layers, strict=True)), activation="tanh")
    images = random_images(2)
    expected = np.stack([reference(image, layers) for image in images])
    assert_allclose(DigitCNN(3, weights=path).fit_transform(images), expected, atol=1e-5)
    with pytest.raises(ValueError, match=r"holds a net with 3 features, but n_features=20"):
        DigitCNN(20, weights=path).fit(images)


def test_nets_of_another_shape_are_refused(tmp_path):
    path, tensors = tmp_path / "own.safetensors", dict(zip(LAYERS, random_layers(3), strict=True))
    write_safetensors(path, tensors, activation="relu")
    with pytest.raises(ValueError, match="has the activation 'relu'"):
        Net.read(path)
    write_safetensors(path, {**tensors, "conv2.bias": np.zeros(99, np.float32)}, activation="tanh")
    with pytest.raises(ValueError, match=r"conv2.bias should have shape \(100,\), got \(99,\)"):
        Net.read(path)
    del tensors["conv1.weight"]
    write_safetensors(path, tensors, activation="tanh")
    with pytest.raises(ValueError, match=r"conv1.weight should have shape \(20, 1, 5, 5\), got None"):
        Net.read(path)


def test_reads_what_safetensors_writes(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    tensors = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32([7]), "none": np.zeros(0, np.float32)}
    safetensors.save_file(tensors, tmp_path / "x", metadata={"key": "value"})
    found, metadata = read_weights(tmp_path / "x")
    assert metadata == {"key": "value"}
    assert found.keys() == tensors.keys()
    for name, values in tensors.items():
        assert_array_equal(found[name], values)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: b"", "header length"),
        (lambda raw: raw[:100], "header length"),
        (lambda raw: b"\xff" * 8 + raw[8:], "header length"),
        (lambda raw: raw[:8] + b"x" + raw[9:], "header cannot be read"),
        (lambda raw: raw[:-1], "do not fit"),
        (lambda raw: raw + b"0", "1 bytes follow"),
        (lambda raw: raw.replace(b'"F32"', b'"I32"'), "has dtype int32"),
        (lambda raw: raw.replace(b"[2, 3]", b"[2, 4]"), "do not fit"),
        (lambda raw: raw.replace(b"[0, 24]", b"[4, 24]"), "do not fit"),
        (lambda raw: raw.replace(b'"shape"', b'"shapo"'), "header cannot be read"),
    ],
)
def test_damaged_weights_are_refused(tmp_path, damage, message):
    path = tmp_path / "x"
    write_safetensors(path, {"a": np.zeros((2, 3), np.float32)}, note=" " * 100)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        read_weights(path)


@pytest.mark.slow
def test_users_never_import_torch():
    code = (
        "import sys, numpy as np; from polytrain_paper.features import DigitCNN;"
        "DigitCNN().fit_transform(np.zeros((1, 28, 28)));"
        "sys.exit(any(name in sys.modules for name in ('torch', 'safetensors', 'pooch')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
