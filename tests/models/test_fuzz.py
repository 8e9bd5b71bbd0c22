"""Ten thousand mutated model files: each loads to a valid model or is refused, quickly and in little memory.

The files are loaded in a process of its own, whose memory is limited: run as a script, this file is that process.
"""

import os
import subprocess
import sys
import time
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pytest
from comparison import seal

import polytrain
from default_models import default_case
from polytrain import ModelFileError, TensorTrain, TensorTrainClassifierCV
from polytrain.tables import CategoryColumn, NumberColumn, Preparation, TableModel, Target
from power_models import power_classifier, power_regressor

MAX_SECONDS, MAX_BYTES = 1.0, 200_000_000
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
        power_classifier(scale=None, class_weight={0: 1.0}, degree=(1, 2, 3), **fast).fit(X, labels),
        TensorTrainClassifierCV(alphas=(0.1,), cv=2, random_state=np.random.RandomState(0), **fast).fit(X, labels > 1),
        power_regressor(basis="legendre", **fast).fit(X, X[:, 0]),
    ]
    for k, model in enumerate(models):
        model.save(folder / str(k))
    for name in ("three-classes", "frame", "frame-regressor"):  # much of them is what was chosen, and the columns
        default_case(name).model.save(folder / name)
    columns = (NumberColumn("a", 0, 0.5, True), CategoryColumn("b", 2, ("x",), False))
    preparation = Preparation(columns, Target("y", 1, False), True, 3, ("?",))
    TableModel(models[-1], preparation, {"rows": 40, "file": "a.csv"}).save(folder / "table")
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
    """Load, and use what was loaded; tell whether it was refused."""
    try:
        model = polytrain.load(path)
    except ModelFileError:
        return True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # finite cores may be huge
        warnings.simplefilter("ignore", UserWarning)  # names of columns
        rows = make_rows(model)
        assert len(model.predict(rows)) == 2
        assert model.choice_.table()
        if hasattr(model, "predict_proba"):
            assert model.predict_proba(rows).shape == (2, len(model.classes_))
    return False


def make_rows(model):
    """Two rows with a value of the right kind in every column."""
    if model.model_.columns is None:
        return np.zeros((2, model.n_features_in_))
    values = {"number": 0.0, "category": "red", "date": np.datetime64("2024-01-01")}
    return np.array([[values[column.kind] for column in model.model_.columns.columns]] * 2, dtype=object)


def mutate_and_load(folder, n_mutations):
    """Load mutated files one after another; print how many were refused and what the slowest one took."""
    contents = [path.read_bytes() for path in sorted(folder.iterdir())]
    for path in sorted(folder.iterdir()):
        assert not load_and_use(path)  # also brings in all that is loaded late, before memory becomes scarce
    limit_memory()
    rng = np.random.default_rng(1)
    path = folder / "mutated"
    n_refused = slowest = 0
    for k in range(n_mutations):
        raw, other = (contents[index] for index in rng.integers(len(contents), size=2))
        content = MUTATIONS[k % len(MUTATIONS)](rng, raw, other)
        if k // len(MUTATIONS) % 4:  # past the checksum, to the checks behind it
            content = seal(content)
        path.write_bytes(content)
        started = time.process_time()
        n_refused += load_and_use(path)
        slowest = max(slowest, time.process_time() - started)
    print(n_refused, slowest)  # noqa: T201


def limit_memory():
    """Allow this process so much more memory than it has; what asks for more gets a MemoryError."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + MAX_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is limited by what Linux offers for it")
@pytest.mark.parametrize(
    "n_mutations", [200, *(pytest.param(number, marks=pytest.mark.slow) for number in (1000, 10_000))]
)
def test_mutated_files(files, n_mutations):
    command = [sys.executable, __file__, files, str(n_mutations)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    n_refused, slowest = map(float, done.stdout.split())
    assert slowest < MAX_SECONDS
    # Both ends were reached: most files are refused, and some harmless changes are not.
    assert n_mutations / 2 < n_refused < n_mutations * 0.95


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
        with pytest.raises(ModelFileError, match="no JSON object"):
            polytrain.load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert limit < peak < MAX_BYTES


if __name__ == "__main__":
    mutate_and_load(Path(sys.argv[1]), int(sys.argv[2]))
