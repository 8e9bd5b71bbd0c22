"""Rows larger than memory: sources of blocks, folders of files, memory maps."""

import numpy as np
import pytest

from polytrain import TensorTrainClassifier, config_context
from polytrain.learning import schedule
from polytrain.learning.engines import runners
from polytrain.rows.summary import summarise
from polytrain.sources import is_source, open_rows, recut
from power_models import power_classifier, power_regressor


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 5)).astype(np.float64)
    labels = np.array(["low", "middle", "top"])[np.digitize(X[:, 0] * X[:, 1] + X[:, 2], [-0.5, 0.5])]
    return X, labels, rng.uniform(0, 2, 3000) * (rng.random(3000) > 0.1)


class Blocks:
    """A source that yields its arrays in blocks, and counts how often it was read."""

    def __init__(self, sizes, *arrays):
        self.sizes, self.arrays, self.n_read = sizes, arrays, 0

    def __iter__(self):
        self.n_read += 1
        start = 0
        for size in self.sizes:
            yield tuple(array[start : start + size] for array in self.arrays)
            start += size


@pytest.mark.parametrize("sizes", [(3000,), (1, 2999), (700, 0, 1100, 1200)])
@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "squared", "solver": "exact", "rank": 3},
        {"loss": "logistic", "solver": "cg", "rank": 3},
        {"loss": "logistic", "decision": "one-vs-one", "class_weight": "balanced", "rank": 2},
        {"loss": "squared", "decision": "binary-code", "basis": "power-unscaled", "rank": 2, "max_sweeps": 2},
    ],
)
def test_classifier_on_blocks_equals_the_one_on_arrays(rows, settings, sizes):
    X, y, weights = rows
    expected = power_classifier(random_state=0, **settings).fit(X, y, weights)
    source = Blocks(sizes, X, y, weights)
    with config_context(max_memory="10 kB"):
        model = power_classifier(random_state=0, **settings).fit(source)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(model.classes_, expected.classes_)
    assert model.n_features_in_ == 5
    assert source.n_read == 3  # two passes, and a look at the first block before them


def test_regressor_on_blocks_equals_the_one_on_arrays(rows):
    X, _, weights = rows
    y = 1e5 + 300 * X[:, 0] * X[:, 1] - X[:, 2]
    expected = power_regressor(rank=3, random_state=0).fit(X, y, weights)
    with config_context(max_memory="10 kB"):
        model = power_regressor(rank=3, random_state=0).fit(Blocks((1400, 1600), X, y, weights))
    np.testing.assert_allclose(model.predict(X), expected.predict(X), rtol=1e-10)


def test_labels_that_are_objects_survive_the_disk(rows, monkeypatch):
    monkeypatch.setattr(runners, "_SMALL", 1000)
    X, y, _ = rows
    labels = y.astype(object)
    with config_context(max_memory=100_000):
        model = power_classifier(rank=2, random_state=0).fit(Blocks((3000,), X, labels))
    expected = power_classifier(rank=2, random_state=0).fit(X, labels)
    assert model.classes_.dtype == expected.classes_.dtype
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_float32_blocks_compute_in_float32(rows):
    X, y, _ = rows
    small = X.astype(np.float32)
    expected = power_classifier(rank=2, random_state=0).fit(small, y)
    with config_context(max_memory="10 kB"):
        model = power_classifier(rank=2, random_state=0).fit(Blocks((2000, 1000), small, y))
    np.testing.assert_allclose(model.decision_function(small), expected.decision_function(small), atol=1e-3)


def test_little_memory_gives_the_same_model_through_files_on_disk(rows, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    X, y, _ = rows
    written = []
    original = runners.Arena.write

    def write(self, arrays):
        written.append(arrays)
        return original(self, arrays)

    monkeypatch.setattr(runners.Arena, "write", write)
    monkeypatch.setattr(runners, "_SMALL", 1000)
    with config_context(max_memory=200_000):
        model = power_classifier(rank=4, random_state=0).fit(Blocks((3000,), X, y))
    assert len(written) > 100
    assert list(tmp_path.iterdir()) == []
    expected = power_classifier(rank=4, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_of_a_source_that_fit_in_memory_are_learned_from_as_arrays(rows, n_jobs, monkeypatch):
    def refuse(*arguments):
        raise AssertionError("asked partition by partition")

    monkeypatch.setattr("polytrain.learning.engines.tasks.TaskEngine.__init__", refuse)
    X, y, weights = rows
    settings = {"rank": 3, "random_state": 0, "n_jobs": n_jobs}
    expected = power_classifier(**settings).fit(X, y, weights)
    source = Blocks((700, 0, 1100, 1200), X, y, weights)
    with config_context(max_memory="10 MB"):
        model = power_classifier(**settings).fit(source)
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    with pytest.raises(AssertionError, match="partition by partition"), config_context(max_memory="500 kB"):
        power_classifier(**settings).fit(source)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_rows_that_fit_in_memory_are_learned_from_as_an_array(rows, loss):
    """To the last bit, also where several classes share a Gram matrix."""
    X, y, weights = rows
    settings = {"rank": 3, "random_state": 0, "loss": loss, "init": "linear"}
    expected = power_classifier(**settings).fit(X, y, weights)
    with config_context(max_memory="10 MB"):
        model = power_classifier(**settings).fit(Blocks((700, 0, 1100, 1200), X, y, weights))
    assert len(model.trains_) > 1
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))


def test_no_more_processes_learn_than_there_is_memory_for(rows, monkeypatch):
    used = []
    monkeypatch.setattr(schedule, "_pays", lambda plan, dims, n_rows, n_processes, n_trains: used.append(n_processes))
    X, y, _ = rows
    # 3000 rows take 432 kB, and 612 kB more for every train of rank 3 that is learned at the same time.
    for max_memory in (1_100_000, 1_700_000, 2_300_000, 9_000_000):
        with config_context(max_memory=max_memory):
            power_classifier(rank=3, n_jobs=3).fit(Blocks((3000,), X, y))
    assert used == [1, 2, 3, 3]


def test_memory_map_larger_than_the_budget(rows, tmp_path):
    X, y, _ = rows
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    expected = power_classifier(rank=3, random_state=0).fit(X, y)
    for max_memory in (None, 50_000):
        with config_context(max_memory=max_memory):
            model = power_classifier(rank=3, random_state=0).fit(mapped, y)
        np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)


def test_folder_of_npy_files(rows, tmp_path):
    X, y, weights = rows
    for name, some in (("-0", slice(0, 1700)), ("-1", slice(1700, 3000))):
        np.save(tmp_path / f"X{name}.npy", X[some])
        np.save(tmp_path / f"y{name}.npy", y[some])
        np.save(tmp_path / f"w{name}.npy", weights[some])
    model = power_classifier(rank=3, random_state=0).fit(open_rows(tmp_path))
    expected = power_classifier(rank=3, random_state=0).fit(X, y, weights)
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)
    (tmp_path / "w-1.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"w-1.npy is missing"):
        open_rows(tmp_path)
    (tmp_path / "y-1.npy").unlink()
    with pytest.raises(FileNotFoundError, match=r"y-1.npy is missing"):
        open_rows(tmp_path)


def test_folder_of_parquet_files(rows, tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y, _ = rows
    frame = pd.DataFrame(X, columns=list("abcde")).assign(kind=y)
    frame[:1000].to_parquet(tmp_path / "0.parquet")
    frame[1000:].to_parquet(tmp_path / "1.parquet")
    model = power_classifier(rank=3, random_state=0).fit(open_rows(tmp_path, target="kind"))
    expected = power_classifier(rank=3, random_state=0).fit(frame[list("abcde")], y)
    np.testing.assert_array_equal(model.feature_names_in_, expected.feature_names_in_)
    table = frame[list("abcde")]
    np.testing.assert_allclose(model.decision_function(table), expected.decision_function(table), atol=1e-8)
    with pytest.raises(ValueError, match="name the column of targets"):
        open_rows(tmp_path)
    with pytest.raises(ValueError, match="no column 'weight'; its columns are"):
        open_rows(tmp_path, target="weight")


def test_recut_keeps_rows_and_order():
    X = np.arange(23)
    for sizes in ((23,), (1,) * 23, (10, 0, 13), (5, 18)):
        cut = list(recut(iter(Blocks(sizes, X)), 7))
        assert [len(block[0]) for block in cut] == [7, 7, 7, 2]
        np.testing.assert_array_equal(np.concatenate([block[0] for block in cut]), X)


def test_what_is_a_source(rows):
    X, y, _ = rows
    assert is_source(Blocks((1,), X, y))
    assert not any(is_source(thing) for thing in (X, X.tolist(), "folder", {"a": 1}, None, 3))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (lambda X, y: ((X, y) for _ in range(2)), "can be read only once"),
        (lambda X, y: Blocks((), X, y), "no rows"),
        (lambda X, y: Blocks((10,), X), "must yield"),
        (lambda X, y: Blocks((10,), X, y[:5]), "differ in their rows"),
        (lambda X, y: Blocks((10,), y, y), "two-dimensional"),
        (lambda X, y: Blocks((3000,), np.where(X > 2, np.nan, X), y), "NaN"),
        (lambda X, y: Blocks((3000,), X, np.full(3000, "one")), "only one class"),
        (lambda X, y: Blocks((3000,), X, y, np.zeros(3000)), "no rows of positive weight"),
        (lambda X, y: Blocks((3000,), X, y, -np.ones(3000)), "must not be negative"),
    ],
)
def test_bad_sources_are_refused(rows, source, message):
    X, y, _ = rows
    with pytest.raises(ValueError, match=message):
        power_classifier().fit(source(X[:3000], y))


def test_y_beside_a_source_is_refused(rows):
    X, y, _ = rows
    with pytest.raises(ValueError, match="leave y and sample_weight out"):
        power_classifier().fit(Blocks((10,), X, y), y)


class Changing:
    """A source that yields other blocks once all of the first have been read."""

    def __init__(self, first, later):
        self._blocks, self._later = first, later

    def __iter__(self):
        yield from self._blocks
        self._blocks = self._later


def _replaced(array, row, value):
    changed = array.copy()
    changed[row] = value
    return changed


CHANGES = {
    "a new label": (lambda X, y, w: [(X, _replaced(y, 2500, "new"), w)], "other targets in rows 2048 to 2999"),
    "a label above all others": (lambda X, y, w: [(X, _replaced(y, 0, "zzz"), w)], "other targets in rows 0 to 1023"),
    "labels as objects": (lambda X, y, w: [(X, _replaced(y.astype(object), 0, 7), w)], "other targets in rows 0"),
    "more rows": (lambda X, y, w: [(X, y, w), (X[:1], y[:1], w[:1])], "3000 rows .*, and more when"),
    "many more rows": (lambda X, y, w: [(X, y, w), (X, y, w)], "3000 rows .*, and more when"),
    "fewer rows": (lambda X, y, w: [(X[:2990], y[:2990], w[:2990])], "3000 rows .*, and fewer when"),
    "many fewer rows": (lambda X, y, w: [(X[:1024], y[:1024], w[:1024])], "3000 rows .*, and fewer when"),
    "no rows": (lambda X, y, w: [], "3000 rows .*, and fewer when it was read again"),
    "other features": (lambda X, y, w: [(_replaced(X, (1500, 2), 9.0), y, w)], "other features in rows 1024 to 2047"),
    "fewer columns": (lambda X, y, w: [(X[:, :4], y, w)], "other features in rows 0 to 1023"),
    "other weights": (lambda X, y, w: [(X, y, _replaced(w, 1500, 9.0))], "other weights in rows 1024 to 2047"),
    "no weights": (lambda X, y, w: [(X, y)], "other weights in rows 0 to 1023"),
    "shuffled rows": (lambda X, y, w: [(X[::-1], y[::-1], w[::-1])], "do not shuffle"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_source_that_changes_between_passes_is_refused(rows, name):
    change, message = CHANGES[name]
    X, y, weights = rows
    y = y.astype("U9")
    with pytest.raises(ValueError, match=message) as caught, config_context(max_memory=1):
        power_classifier().fit(Changing([(X, y, weights)], change(X, y, weights)))
    assert "same rows in the same order" in str(caught.value)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_targets_that_change_between_passes_are_refused(rows, value):
    X, _, _ = rows
    later = _replaced(X[:, 0], 5, value)
    with pytest.raises(ValueError, match="other targets in rows 0 to 2999 when it was read again"):
        power_regressor().fit(Changing([(X, X[:, 0])], [(X, later)]))


def test_levels_that_appear_in_a_later_pass_are_refused(rows):
    X, y, _ = rows
    towns = np.column_stack([X, np.arange(len(X)) % 3])
    later = _replaced(towns, (17, 5), 4.0)
    with pytest.raises(ValueError, match="other features in rows 0 to 2999 when it was read again"):
        TensorTrainClassifier(categorical_features=[5]).fit(Changing([(towns, y)], [(later, y)]))


def test_an_unknown_label_of_rows_elsewhere_is_named():
    summary = summarise(np.ones((2, 1)), np.array(["b", "d"]), np.ones(2), classify=True)
    assert summary.label_index(np.array(["d", "b", "d"])).tolist() == [1, 0, 1]
    for label in ("a", "c", "e"):
        with pytest.raises(ValueError, match=rf"y holds the label '{label}', which was missing .*\['b', 'd'\]"):
            summary.label_index(np.array(["b", label], dtype=object))


def test_a_source_with_one_iterator_for_all_passes_is_refused(rows):
    X, y, _ = rows

    class Once:
        def __init__(self):
            self._blocks = iter([(X, y)])

        def __iter__(self):
            return self._blocks

    with pytest.raises(ValueError, match="Once, which can be read only once"):
        power_classifier().fit(Once())


def test_blocks_of_one_pass_that_are_not_alike_are_refused(rows):
    X, y, weights = rows
    for second, message in (
        ((X[:, :4], y), r"the shapes \[\(5,\), \(\)\] in one block and \[\(4,\), \(\)\] in another"),
        ((X, np.stack([y, y], axis=1)), r"and \[\(5,\), \(2,\)\] in another"),
        ((X, y, weights), r"and \[\(5,\), \(\), \(\)\] in another"),
    ):
        with pytest.raises(ValueError, match=message):
            power_classifier().fit(Changing([(X, y), second], []))


def test_wide_rows_and_second_moments_may_wait_on_disk(rows):
    X, y, _ = rows
    settings = {"degree": 3, "rank": 24, "solver": "cg", "max_sweeps": 1, "random_state": 0, "loss": "squared"}
    expected = power_classifier(**settings).fit(X, y == "low")
    with config_context(max_memory=50_000):
        model = power_classifier(**settings).fit(Blocks((1500, 1500), X, y == "low"))
    np.testing.assert_allclose(model.decision_function(X), expected.decision_function(X), atol=1e-8)
