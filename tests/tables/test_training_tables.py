"""What is learned from a table is applied to other tables: against a slow reference, and against mistakes."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.columns import CategoryColumn
from polytrain.tables import ReadOptions, TableError, fit_table, load_table_model, open_table_file
from polytrain.tables.cells import RowReader
from polytrain.tables.layout import find_column
from tables.training import GIVEN, features, fitted, learn, noted, refused


def reference(rows, kinds):
    """One cell at a time: numbers as they are, places of categories in the alphabet, NaN for missing cells."""
    features = []
    for column, kind in zip(zip(*rows, strict=True), kinds, strict=True):
        known = sorted({cell for cell in column if cell not in ("", "?")})
        features.append(
            [
                np.nan if cell in ("", "?") else float(cell) if kind == "number" else float(known.index(cell))
                for cell in column
            ]
        )
    return np.array(features).T


number = st.sampled_from(["1", "2.5", "-3", "1e2", "7"])
cells = st.lists(st.tuples(number | st.just("?"), st.sampled_from(["a", "b", "c", "?", ""])), min_size=1, max_size=30)


@settings(max_examples=40, deadline=None)
@given(cells)
def test_features_equal_the_reference(tmp_path_factory, drawn):
    rows = [("1", "a"), ("2", "b"), *drawn]
    text = "".join(f"{x},{c},{'yes' if k % 2 else 'no'}\n" for k, (x, c) in enumerate(rows))
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    learned = learn(path, text)
    expected = reference(rows, ["number", "category"])
    np.testing.assert_array_equal(features(learned), expected)
    # Applied to its own table, in small blocks and without the target, the layout gives the same.
    model = fitted(learned, TensorTrainClassifier(rank=1, max_sweeps=0))
    path.write_text("".join(f"{x},{c}\n" for x, c in rows))
    with open_table_file(path, ReadOptions(header="no")) as table:
        reader = RowReader(model.layout, model.estimator, table, (), None, print)
        frames = [reader.read(block) for block in table.blocks(3)]
    parts = [model.fitted.columns.encode(frame) for frame in frames]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


def test_kinds_of_targets(tmp_path):
    path = tmp_path / "a.csv"
    assert learn(path, "1,yes\n2,no\n").y.tolist() == ["yes", "no"]
    few = learn(path, "1,0\n2,1\n3,0\n")
    assert (few.is_classification, few.y.dtype) == (True, np.int64)
    assert not learn(path, "1,0.5\n2,1\n").is_classification
    many = "".join(f"{k % 3},{k}\n" for k in range(11))
    assert not learn(path, many).is_classification
    assert learn(path, many, task="classification").is_classification
    assert learn(path, "1,0\n2,1\n3,0\n", task="regression").y.dtype == np.float64
    refused(tmp_path, "1,yes\n2,no\n", "regression needs numbers", task="regression")


def test_rows_without_target_are_left_out(tmp_path):
    rows = learn(tmp_path / "a.csv", "1,yes\n2,?\n3,no\n")
    assert (rows.X.iloc[:, 0].to_numpy().tolist(), rows.n_dropped) == ([1.0, 3.0], 1)
    refused(tmp_path, "1,?\n2,\n", "all cells of the target 'column 1' are missing")


def test_columns_by_name_and_position():
    table = SimpleNamespace(names=["a", "b", "2"], named=True, label="t")
    assert [find_column(given, table) for given in ("b", "0", "-1", "-3", "2", "1")] == [1, 0, 2, 0, 2, 1]
    for wrong in ("c", "3", "-4", "1.0"):
        with pytest.raises(TableError, match=f"t has no column '{wrong}'; it has the columns a, b, 2"):
            find_column(wrong, table)


def test_drop_and_categorical(tmp_path):
    text = "id,size,kind,y\n10,1,4,a\n11,2,5,b\n12,3,4,a\n"
    rows = learn(tmp_path / "a.csv", text, drop=["id"], categorical=["kind"])
    assert list(rows.X) == ["size", "kind"]
    assert rows.X["kind"].dtype == "category"
    np.testing.assert_array_equal(features(rows), [[1, 0], [2, 1], [3, 0]])
    refused(tmp_path, text, "cannot be dropped", drop=["y"])
    refused(tmp_path, text, "has no column 'idd'", drop=["idd"])


def test_columns_without_information_are_left_out(tmp_path):
    rows = learn(tmp_path / "a.csv", "k,e,t,x,y\n1,?,u,1,a\n1,?,u,2,b\n")
    assert noted(rows) == [f"column {name!r} left out: it has a single value, or none" for name in "ket"]
    assert list(rows.X) == ["x"]
    refused(tmp_path, "1,a\n1,b\n", "no column to learn from")


def test_text_in_a_number_column(tmp_path):
    text = "x,y\n1,a\n2,b\ntwo,a\n4,b\n"
    refused(tmp_path, text, r"line 4: column 'x' holds numbers, but here 'two'.*missing='two'.*categorical='x'")
    assert learn(tmp_path / "a.csv", text, missing=["two"]).n_missing == 1
    assert sorted(learn(tmp_path / "a.csv", text, categorical=["x"]).X["x"].unique()) == ["1", "2", "4", "two"]
    # More text than numbers: categories, some of which look like numbers.
    assert learn(tmp_path / "a.csv", "x,y\n1,a\nu,b\nv,a\n").X["x"].dtype == "category"


def test_text_after_many_numbers(tmp_path):
    """Earlier blocks are already numbers; they must not be lost or become categories."""
    text = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(70_000)) + "oops,a\n" * 20
    refused(tmp_path, text, "line 70001: column 'column 0' holds numbers, but here 'oops'")
    late = "?,a\n" * 70_000 + "u,a\nv,b\n"
    rows = learn(tmp_path / "a.csv", late)
    assert rows.n_missing == rows.X.iloc[:, 0].isna().sum() == 70_000
    assert rows.X.iloc[-2:, 0].tolist() == ["u", "v"]
    numbers = learn(tmp_path / "a.csv", "?,a\n" * 70_000 + "1,a\n2,b\n").X.iloc[:, 0].to_numpy()
    assert np.isnan(numbers[:-2]).all()
    assert numbers[-2:].tolist() == [1.0, 2.0]


def test_text_that_is_named_as_categories_is_not_read_as_dates(tmp_path):
    text = "".join(f"2024-01-{k % 28 + 1:02},{k % 7},{'ab'[k % 2]}\n" for k in range(60))
    assert fitted(learn(tmp_path / "a.csv", text)).estimator.model_.columns.columns[0].kind == "date"
    columns = fitted(learn(tmp_path / "a.csv", text, categorical=[0])).estimator.model_.columns
    assert len(columns.levels[0]) == 28


def test_levels_that_are_not_told_apart_are_noted(tmp_path):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"t{k % 80},{'ab'[k % 2]}\n" for k in range(400)))
    said = []
    fit_table(tmp_path / "a.csv", "y", folds=2, say=said.append, rank=1, alpha=1e-3, max_sweeps=1)
    assert sum("column 'x' has 80 levels, of which only the 64 most frequent" in line for line in said) == 1


def test_hundreds_of_categories_are_kept_as_in_frames(tmp_path):
    text = "".join(f"t{k % 120},{k % 7},{'ab'[k % 2]}\n" for k in range(400))
    rows = learn(tmp_path / "a.csv", text)
    assert list(rows.X) == ["column 0", "column 1"]
    assert len(rows.X.iloc[:, 0].unique()) == 120
    assert not noted(rows)


def test_identifiers(tmp_path):
    """Running numbers, numbers that are called so, and texts that all differ; years and measurements are none."""
    lines = [f"{k},{k + 1990},{7 * k % 100},{k * 1.5},u{k},{k % 3},{'ab'[k % 2]}" for k in range(40)]
    rows = learn(tmp_path / "a.csv", "\n".join(["row,year,customerId,size,code,few,y", *lines]))
    assert list(rows.X) == ["year", "size", "few"]
    number, called, text = noted(rows)
    assert number.startswith("column 'row' left out: a different whole number in every row, which looks like")
    assert called.startswith("column 'customerId' left out: a different whole number in every row")
    assert text.startswith("column 'code' left out: 40 different texts in 40 rows, such as 'u0', which looks like")
    kept = learn(tmp_path / "a.csv", "\n".join(["row,year,customerId,size,code,few,y", *lines]), keep=["row", "code"])
    assert list(kept.X) == ["row", "year", "size", "code", "few"]


@pytest.mark.parametrize("part", [1.0, 0.8, 0.3])
def test_a_random_part_of_the_rows_has_the_same_identifiers(tmp_path, part):
    rng = np.random.default_rng(0)
    n = 1000
    chosen = np.sort(rng.choice(n, int(part * n), replace=False))
    columns = {
        "a": np.arange(n),
        "b": 1 + rng.permutation(n),
        "customer_id": 5000 + 37 * rng.permutation(n),
        # Measurements, all different.
        "population": rng.choice(10**7, n, replace=False),
        "depth": 10 * np.arange(n),
        "jahr": 1024 + np.arange(n),
        "elapsed_seconds": np.sort(rng.choice(2 * n, n, replace=False)),
        "y": np.arange(n) % 2,
    }
    lines = [",".join(str(values[k]) for values in columns.values()) for k in chosen]
    rows = learn(tmp_path / "a.csv", "\n".join([",".join(columns), *lines]))
    assert list(rows.X) == ["population", "depth", "jahr", "elapsed_seconds"]
    assert ["a different whole number in every row" in note for note in noted(rows)] == [True] * 3


def test_whole_numbers_of_a_small_table_are_kept(tmp_path):
    rng = np.random.default_rng(0)
    income, people = rng.choice(np.arange(18, 90), 30, replace=False) * 1000, rng.choice(120, 30, replace=False)
    lines = [f"{income[k]},{people[k]},{'ab'[k % 2]}" for k in range(30)]
    assert learn(tmp_path / "a.csv", "\n".join(["income,people,y", *lines])).X.columns.tolist() == ["income", "people"]


def test_numbers_and_dates_as_people_write_them(tmp_path):
    lines = [
        f"{k},5;{k % 9 + 1}.{k:03d},25 €;{k % 28 + 1:02d}.{k % 12 + 1:02d}.2024;{k % 50} %;{'ab'[k % 2]}"
        for k in range(60)
    ]
    rows = learn(tmp_path / "a.csv", "\n".join(["size;price;day;part;y", *lines]))
    assert [dtype.kind for dtype in rows.X.dtypes] == ["f", "f", "M", "f"]
    assert rows.X.iloc[:, 0].to_numpy()[:3].tolist() == [0.5, 1.5, 2.5]
    assert rows.X.iloc[:, 1].to_numpy()[:3].tolist() == [1000.25, 2001.25, 3002.25]
    assert rows.X.iloc[:, 2].to_numpy()[1] == np.datetime64("2024-02-02")
    assert rows.X.iloc[:, 3].to_numpy()[7] == 7.0
    assert [note.partition(": ")[2] for note in noted(rows)] == [
        "numbers, such as '1.234,5'",
        "numbers, such as '1.234,5 €'",
        "dates, such as '31.12.2024'",
        "numbers, such as '1234.5 %'",
    ]
    # The forms are remembered, also in the file.
    fitted(rows).save(tmp_path / "m")
    (tmp_path / "one.csv").write_text("size;price;day;part\n1,5;2.001,25 €;02.02.2024;1 %\n")
    model = load_table_model(tmp_path / "m")
    assert model.layout == rows.layout
    with model.open(tmp_path / "one.csv") as table:
        (block,) = model.blocks(table)
    np.testing.assert_array_equal(block.X, model.fitted.columns.encode(rows.X[1:2]))


def test_several_targets(tmp_path):
    text = "".join(f"{k % 7},{k % 5},{k % 7 + k % 5},{k % 7 - k % 5}\n" for k in range(60))
    rows = learn(tmp_path / "a.csv", "u,v,sum,gap\n" + text, target=["sum", "gap"])
    assert rows.y.shape == (60, 2)
    assert not rows.is_classification
    model = fit_table(tmp_path / "a.csv", ["sum", "gap"], folds=2)
    model.save(tmp_path / "m")
    again = load_table_model(tmp_path / "m")
    assert again.predict(tmp_path / "a.csv").shape == (60, 2)
    figures = again.evaluate(tmp_path / "a.csv")
    assert figures["rmse"] < 0.2
    assert again.evaluate(tmp_path / "a.csv", target=["gap", "sum"])["rmse"] > 1.0
    refused(tmp_path, "1,a,2\n2,b,3\n", "several targets must be numbers", target=[1, 2])
    refused(tmp_path, "1,3,2\n2,4,3\n", "named twice", target=[1, 1])


def test_one_rare_class(tmp_path):
    lines = [f"{k % 11},{k % 4},{'abc'[0 if k == 5 else 1 + k % 2]}" for k in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["u,v,y", *lines]))
    model = fit_table(tmp_path / "a.csv", "y", folds=3)
    assert model.estimator.classes_.tolist()[-2:] == ["b", "c"]


@pytest.fixture
def model(tmp_path):
    rows = learn(tmp_path / "train.csv", "size,kind,y\n1,u,a\n2,v,b\n3,u,a\n4,v,b\n")
    return fitted(rows, TensorTrainClassifier(basis="spline", **GIVEN))


def blocks(model, tmp_path, text, name="new.csv", header=None, **options):
    (tmp_path / name).write_text(text)
    with model.open(tmp_path / name, ReadOptions(header=header or model.header)) as table:
        return list(model.blocks(table, **options))


def test_columns_are_found_by_name(model, tmp_path):
    (block,) = blocks(model, tmp_path, "extra,kind,size\n9,v,2\n")
    np.testing.assert_array_equal(block.X, [[2.0, 1.0]])
    (same,) = blocks(model, tmp_path, "2,v\n", header="no")
    np.testing.assert_array_equal(same.X, block.X)
    with pytest.raises(TableError, match=r"lacks the column size; it has kind"):
        blocks(model, tmp_path, "kind\nv\n")
    with pytest.raises(TableError, match=r"has 1 columns, but the model was fitted on 3, the target included"):
        blocks(model, tmp_path, "2\n", header="no")


def test_targets(model, tmp_path):
    (block,) = blocks(model, tmp_path, "size,kind,y\n1,u,b\n2,u,?\n3,u,a\n", with_target=True)
    assert block.y.tolist() == [1, 0]
    assert len(block.X) == 2
    (other,) = blocks(model, tmp_path, "size,kind,z\n1,u,b\n", with_target=True, target=["z"])
    assert other.y.tolist() == [1]
    with pytest.raises(TableError, match="lacks the target y;"):
        blocks(model, tmp_path, "size,kind\n1,u\n", with_target=True)
    with pytest.raises(TableError, match="'c' is not one of the model's classes a, b"):
        blocks(model, tmp_path, "size,kind,y\n1,u,c\n", with_target=True)


def test_new_categories(model, tmp_path):
    text = "size,kind\n1,u\n2,w\n"
    notes = []
    (block,) = blocks(model, tmp_path, text, say=notes.append)
    (note,) = notes
    assert note.startswith("note: column 'kind': 1 cells hold categories that the training did not have, such as 'w';")
    np.testing.assert_array_equal(block.X[:, 1], [0, -1])
    # It is like the mean of all rows, and not like any of the categories.
    scores = model.fitted.decide(np.array([[2.0, -1], [2.0, 0], [2.0, 1]]))
    assert scores[0] == pytest.approx((scores[1] + scores[2]) / 2)


def test_numbers_that_are_categories(tmp_path):
    """A column of whole numbers comes with a point once some of its cells are missing."""
    rows = learn(tmp_path / "train.csv", "kind,y\n3,a\n5,b\n3,a\n", categorical=["kind"])
    (block,) = blocks(fitted(rows), tmp_path, "kind\n5.0\n3\n5.5\nx\n")
    assert block.X[:, 0].tolist() == [1, 0, -1, -1]


def test_missing_where_training_had_none(model, tmp_path):
    (block,) = blocks(model, tmp_path, "size,kind\n?,\n")
    assert np.isnan(block.X).all()
    assert np.isfinite(model.fitted.decide(block.X)).all()


def test_missing_cells_of_polynomials(tmp_path):
    rows = learn(tmp_path / "train.csv", "size,y\n1,a\n2,b\n3,a\n4,b\n")
    model = fitted(rows, TensorTrainClassifier(basis="power", **GIVEN))
    with pytest.raises(TableError, match=r"line 3: the cell of column 'size' is missing.*'power'.*basis='auto'"):
        blocks(model, tmp_path, "size\n1\n?\n")


def test_number_labels(tmp_path):
    rows = learn(tmp_path / "train.csv", "x,y\n1,3\n2,7\n3,3\n4,7\n")
    model = fitted(rows)
    (block,) = blocks(model, tmp_path, "x,y\n1,7.0\n1,3\n1,\n", with_target=True)
    assert block.y.tolist() == [1, 0]
    for wrong in ("5", "b"):
        with pytest.raises(TableError, match=f"'{wrong}' is not one of the model's classes 3, 7"):
            blocks(model, tmp_path, f"x,y\n1,{wrong}\n", with_target=True)


def test_a_plain_model_file_reads_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 1, 0]})
    TensorTrainClassifier(**GIVEN).fit(frame, [0, 1, 0, 1]).save(tmp_path / "m")
    model = load_table_model(tmp_path / "m")
    (block,) = blocks(model, tmp_path, "b,a\n1,2\n")
    np.testing.assert_array_equal(block.X, [[2.0, 1.0]])
    with pytest.raises(TableError, match="does not say which column is the target"):
        blocks(model, tmp_path, "b,a\n1,2\n", with_target=True)


@pytest.fixture(scope="module")
def frame():
    """What a frame may hold: numbers, truth values, text and categories, also with spaces, gaps and question marks."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 60
    found = pandas.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "new": rng.integers(0, 2, n).astype(bool),
            "town": rng.choice([" Bern", " Graz", " ?"], n),
            "floor": pandas.Categorical(rng.choice([1.0, 2.0, 3.5], n)),
        }
    )
    found.loc[3, ["size", "town", "floor"]] = None
    return found


def frame_target(frame):
    return np.where(frame["size"].fillna(0) + frame["new"] + (frame["town"] == " Bern") > 0.8, "yes", "no")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_models_of_frames_read_tables(frame, tmp_path, kind):
    estimator = TensorTrainClassifier(**GIVEN).fit(frame, frame_target(frame))
    estimator.save(tmp_path / "m")
    model = load_table_model(tmp_path / "m")
    assert all(isinstance(model.view.column(k), CategoryColumn) for k in (2, 3))
    if kind == "csv":
        frame.to_csv(tmp_path / "rows.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "rows.parquet", index=False)
    with model.open(tmp_path / f"rows.{kind}") as table:
        (block,) = model.blocks(table)
    np.testing.assert_allclose(model.fitted.probabilities(block.X), estimator.predict_proba(frame), rtol=0, atol=1e-5)
    # Stored with its layout it still reads such tables.
    model.save(tmp_path / "again")
    assert load_table_model(tmp_path / "again").layout == model.layout


def test_dates_of_frames(tmp_path):
    pandas = pytest.importorskip("pandas")
    days = pandas.DataFrame({"day": pandas.to_datetime(["2024-01-01", "2024-02-03", "2024-03-04", "2024-04-06"])})
    estimator = TensorTrainRegressor(rank=2, max_sweeps=1, random_state=0).fit(days, [0.0, 1, 0, 1])
    estimator.save(tmp_path / "days")
    days.to_csv(tmp_path / "days.csv", index=False)
    model = load_table_model(tmp_path / "days")
    np.testing.assert_allclose(model.predict(tmp_path / "days.csv"), estimator.predict(days), rtol=0, atol=1e-5)
    with pytest.raises(TableError, match=r"line 2: column 'day' holds dates, but here 'now'"):
        blocks(model, tmp_path, "day\nnow\n")


def test_levels_that_look_alike_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    alike = pandas.DataFrame({"kind": pandas.Categorical([1, "1", 1, "1"])})
    TensorTrainClassifier(**GIVEN).fit(alike, [0, 1, 0, 1]).save(tmp_path / "alike")
    with pytest.raises(TableError, match=r"column 'kind' that look alike in a table"):
        blocks(load_table_model(tmp_path / "alike"), tmp_path, "kind\n1\n")


def test_decimal_commas_where_training_had_points(tmp_path):
    rows = learn(tmp_path / "train.csv", "x;y\n1.5;a\n2.5;b\n3.5;a\n4.5;b\n")
    model = fitted(rows)
    with pytest.raises(TableError, match=r"column 'x' holds numbers, but here '1,5'.*decimal=','"):
        blocks(model, tmp_path, "x;z\n1,5;0\n")
    (block,) = blocks(model, tmp_path, "x;z\n1,5;0\n", decimal=",")
    assert block.X.tolist() == [[1.5]]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"metric": "rmse"}, "metric='rmse' does not apply to classification. Name one of error"),
        ({"metric": "size"}, "metric='size' does not apply to classification. Name one of error"),
        ({"loss": "poisson"}, "the target 'y' holds text such as 'a'; regression .* leave out task=... and loss=..."),
        ({"quantile": 0.5}, r"quantile=\.\.\. does not apply to classification"),
        ({"banana": 1}, "banana=... does not apply to classification.*Parameters are those of TensorTrainClassifier"),
    ],
)
def test_settings_of_another_task(tmp_path, parameters, message):
    (tmp_path / "a.csv").write_text("x,y\n" + "".join(f"{k % 5},{'ab'[k % 2]}\n" for k in range(20)))
    with pytest.raises(ValueError, match=message):
        fit_table(tmp_path / "a.csv", "y", **parameters)


def test_metrics_of_folds(tmp_path):
    (tmp_path / "a.csv").write_text("x,z,y\n" + "".join(f"{k % 5},{k % 7},{'ab'[k % 5 > 2]}\n" for k in range(70)))
    told = []
    model = fit_table(tmp_path / "a.csv", "y", metric="auc", class_weight="balanced", say=told.append)
    assert model.estimator.left_out_.model["auc"] > 0.99
    assert any(line.startswith("fold 1 of 3: area under the ROC curve 1") for line in told)
    assert model.estimator.class_weight == "balanced"


def test_forms_are_found_from_many_rows(tmp_path):
    """What the first rows leave open, later ones decide: fractions after whole numbers, days after months."""
    lines = [f"{k % 12 + 1}/{k % 12 + 1}/2024;{k % 50};{'ab'[k % 2]}" for k in range(30_000)]
    rows = learn(tmp_path / "a.csv", "\n".join(["day;size;y", *lines, "25/12/2024;1,5;a"]))
    assert rows.X["day"].iloc[-1] == np.datetime64("2024-12-25")
    assert rows.X["size"].iloc[[1, -1]].tolist() == [1.0, 1.5]
    month = learn(tmp_path / "a.csv", "\n".join(["day;size;y", *lines, "12/25/2024;1,5;a"])).X["day"]
    assert month.iloc[-1] == np.datetime64("2024-12-25")


def test_a_named_decimal_counts(tmp_path):
    text = "x;y\n" + "".join(f"{k};{'ab'[k % 2]}\n" for k in range(2, 30)) + "1,5;a\n"
    refused(tmp_path, text, "line 30: column 'x' holds numbers, but here '1,5'", decimal=".")
    for decimal in (None, ","):
        assert learn(tmp_path / "a.csv", text, decimal=decimal).X["x"].iloc[-1] == 1.5
