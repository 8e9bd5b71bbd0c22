"""Ten thousand damaged and ten thousand hostile model files: each loads to a model that works, or is refused.

Loads take the time and memory that docs/model-files.md promises. The files are loaded in a process of its own, whose
memory is limited: run as a script, this file is that process.
"""

import argparse
import contextlib
import io
import itertools
import os
import subprocess
import sys
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from bounds import BYTES_PER_BYTE, FREE_BYTES, load_within_bounds
from comparison import seal
from hostile import ModelParts, hostile_file

import polytrain
from default_models import default_case
from polytrain import (
    ModelFileError,
    TensorTrain,
    TensorTrainClassifier,
)
from polytrain.cli.export import info
from polytrain.tables import TableError, fit_table
from power_models import power_classifier, power_regressor

# What all that is done with a file may take.
MAX_BYTES = 300_000_000
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
NUMBERS = (0, 1, 2, 7, 255, 2**31, 2**32 - 1, 2**53, 2**63 - 1, 2**63, 2**64 - 1)
WORDS = (
    *(b'null true false NaN 1e999 -1 0.5 [] {} "" 99999999999999999999 [[[[[[[[[[[[ 1e308 -0.0'.split()),
    *(b'"F64" "F32" "I64" "BOOL" "U8" "given" "float" "array" "parameter.0" "cores"'.split()),
)


@pytest.fixture
def files(tmp_path):
    folder = tmp_path / "models"
    folder.mkdir()
    fast = {"rank": 2, "max_sweeps": 1}
    labels = np.arange(40) % 4
    start = [TensorTrain.random((3, 3, 3), 2, k) for k in range(6)]
    models = [
        power_classifier(decision="one-vs-one", init=start, **fast).fit(X, np.array(["a", "bb", "c", "d"])[labels]),
        power_classifier(basis="power-unscaled", class_weight={0: 1.0}, degree=(1, 2, 3), **fast).fit(X, labels),
        power_classifier(random_state=np.random.RandomState(0), **fast).fit(X, labels > 1),
        power_regressor(basis="legendre", **fast).fit(X, X[:, 0]),
    ]
    words = np.array(["no", "perhaps", "quite", "yes", "?"])[np.arange(40) % 5]
    gaps = np.where(RNG.random(X.shape) < 0.2, np.nan, X)
    bases = ["spline", "category", "smooth-rank"]
    models += [
        power_classifier(decision="binary-code", basis="chebyshev", **fast).fit(X, words),
        power_regressor(**fast).fit(X, X[:, :2]),
        power_regressor(alpha=0.1, random_state=0, **fast).fit(X, X[:, 0]),
        TensorTrainClassifier(basis=bases, alpha=0.1, random_state=0, **fast).fit(gaps, labels > 1),
    ]
    for k, model in enumerate(models):
        model.save(folder / str(k))
    for name in ("three-classes", "frame", "frame-regressor"):  # much of them is what was chosen, and the columns
        default_case(name).model.save(folder / name)
    (folder / "a.csv").write_text("a;y;b\n" + "".join(f"{k},5;{k % 7};{'xz'[k % 2]}\n" for k in range(40)))
    fit_table(folder / "a.csv", "y", folds=0, rank=2, alpha=0.1, max_sweeps=1).save(folder / "table")
    (folder / "a.csv").unlink()
    return folder


def flip_bits(rng, raw, other):
    mutated = bytearray(raw)
    for _ in range(rng.integers(1, 9)):
        mutated[rng.integers(len(raw))] ^= 1 << rng.integers(8)
    return bytes(mutated)


def cut(rng, raw, other):
    return raw[: rng.integers(len(raw))]


def swap_headers(rng, raw, other):
    place, length = (int.from_bytes(content[:8], "little") + 8 for content in (raw, other))
    return other[:length] + raw[place:]


def change_length(rng, raw, other):
    length = int(rng.choice(np.array(NUMBERS, dtype=np.uint64)))
    return length.to_bytes(8, "little") + raw[8:]


def change_number(rng, raw, other):
    """Overwrite eight bytes somewhere after the header with some special number."""
    start = int.from_bytes(raw[:8], "little") + 8
    place = start + 8 * int(rng.integers((len(raw) - start) // 8))
    word = rng.choice(np.array(NUMBERS, dtype=np.uint64)).tobytes()
    return raw[:place] + (word if rng.random() < 0.7 else rng.bytes(8)) + raw[place + 8 :]


def change_word(rng, raw, other):
    """Replace a token of the JSON, escaped quotes included, and mend the length."""
    length = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + length].rstrip()
    places = [k for k, byte in enumerate(header) if byte in b":,[]{}"]
    left = int(rng.integers(len(places) - 1))
    start, stop = places[left] + 1, places[min(left + int(rng.integers(1, 3)), len(places) - 1)]
    word = WORDS[rng.integers(len(WORDS))]
    if start > header.index(b'"model"') and stop < header.rindex(b'}"'):
        word = word.replace(b'"', b'\\"')
    header = header[:start] + word + header[stop:]
    return len(header).to_bytes(8, "little") + header + raw[8 + length :]


def change_digits(rng, raw, other):
    """Change a digit in the JSON: sizes, offsets, parameters."""
    digits = [k for k in range(150, int.from_bytes(raw[:8], "little")) if raw[k] in b"0123456789"]
    place = digits[rng.integers(len(digits))]
    return raw[:place] + b"0123456789"[(d := int(rng.integers(10))) : d + 1] + raw[place + 1 :]


def duplicate(rng, raw, other):
    start, stop = sorted(rng.integers(len(raw), size=2))
    return raw[:stop] + raw[start:]


MUTATIONS = (flip_bits, cut, swap_headers, change_length, change_number, change_word, change_digits, duplicate)


def load_and_use(path):
    """Load, use what was loaded, and tell whether it was refused."""
    model = load_within_bounds(path)
    if model is not None:
        use(model)
        show_info(path)
    return model is None


def use(model):
    """Predict some rows, all of them with finite numbers."""
    rows = make_rows(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # names of columns
        predicted = model.predict(rows)
        assert len(predicted) == len(rows)
        if not hasattr(model, "classes_"):
            assert np.isfinite(predicted).all()
        if hasattr(model, "predict_proba"):
            chances = model.predict_proba(rows)
            assert chances.shape == (len(rows), len(model.classes_))
            np.testing.assert_allclose(chances.sum(axis=1), 1.0, rtol=1e-9)
    assert model.choice_.table()
    assert repr(model)


def show_info(path):
    """Run the command, which also reads what is said about tables."""
    for as_json in (False, True):
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            try:
                info(argparse.Namespace(model=path, json=as_json))
            except ModelFileError:
                return
            except TableError as error:
                assert "Use it from Python" in str(error)  # noqa: PT017  such as columns of dates
                return
        shown.getvalue().encode()


def make_rows(model):
    """Some rows with a value of the right kind in every column."""
    columns = model.model_.columns
    if columns is None:
        rows = np.outer([0.0, -1.0, 1.0, 0.5], np.ones(model.n_features_in_))
        gaps = [feature_map.takes_missing for feature_map in model.maps_]
        return np.vstack([rows, np.where(gaps, np.nan, 0.0)])
    values = {
        "number": (0.0, -1.0, 1.0, None),
        "category": ("red", "blue", 7, None),
        "date": (*map(np.datetime64, ("2024-01-01", "1900-01-01")), None, None),
    }
    return np.array([[values[column.kind][k] for column in columns.columns] for k in range(4)], dtype=object)


def damaged_files(contents):
    """Bytes of files that are changed anywhere, with a right checksum or without."""
    rng = np.random.default_rng(1)
    for k in itertools.count():
        raw, other = (contents[index] for index in rng.integers(len(contents), size=2))
        content = MUTATIONS[k % len(MUTATIONS)](rng, raw, other)
        yield seal(content) if k // len(MUTATIONS) % 4 else content  # past the checksum, to the checks behind it


def hostile_files(contents):
    """Bytes of files that are right in form."""
    rng = np.random.default_rng(2)
    models = [ModelParts(raw) for raw in contents]
    while True:
        yield hostile_file(rng, models)


FILES = {"damaged": damaged_files, "hostile": hostile_files}


def load_many(folder, kind, n_files):
    """Load files one after another and print how many were refused."""
    paths = sorted(folder.iterdir())
    contents = [path.read_bytes() for path in paths]
    for path in paths:
        assert not load_and_use(path)  # also brings in all that is loaded late, before memory becomes scarce
    limit_memory()
    path = folder / "file"
    n_refused = 0
    for k, content in enumerate(itertools.islice(FILES[kind](contents), n_files)):
        path.write_bytes(content)
        try:
            n_refused += load_and_use(path)
        except BaseException as error:
            error.add_note(f"{kind} file {k}")
            raise
    print(n_refused)  # noqa: T201


def limit_memory():
    """Allow this process so much more memory than it has; what asks for more gets a MemoryError."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited by what Linux offers for it")
@pytest.mark.parametrize("kind", list(FILES))
@pytest.mark.parametrize("n_files", [200, pytest.param(2_000, marks=pytest.mark.slow)])
def test_many_files(files, kind, n_files):
    command = [sys.executable, __file__, files, kind, str(n_files)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    # Both ends were reached: most files are refused, and some harmless changes are not.
    assert n_files / 2 < int(done.stdout) < n_files * 0.95


@pytest.mark.slow
def test_the_largest_header_takes_little_memory(tmp_path):
    """JSON that is small in the file and large in memory stays below the limit."""
    path = tmp_path / "model"
    limit = polytrain.models.file.MAX_HEADER_BYTES
    opening = b'{"__metadata__":{"format":"polytrain","sha256":"' + b"0" * 64 + b'","version":"1","model":"['
    for filler in (b"{},", b"1.5,"):
        header = opening + filler * ((limit - len(opening) - 10) // len(filler)) + b'0]"}}'
        path.write_bytes(seal(len(header).to_bytes(8, "little") + header))
        tracemalloc.start()
        with pytest.raises(ModelFileError, match="not a JSON object"):
            polytrain.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert limit < peak < FREE_BYTES + BYTES_PER_BYTE * path.stat().st_size


if __name__ == "__main__":
    load_many(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
