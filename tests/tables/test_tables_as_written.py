"""Tables as people and programs write them: what one file shows, another option says, or a user would try."""

import numpy as np
import pandas
import pytest

from polytrain import TensorTrainClassifier, TensorTrainRegressor
from polytrain.tables import TableError, TableOptions, fit_table, load_table_model
from tables.training import GIVEN, fitted, learn, noted, refused


def test_points_between_thousands_where_other_columns_have_decimal_commas(tmp_path):
    lines = [f"1.{137 + 3 * k};{k % 7},5;{'ab'[k % 2]}" for k in range(40)]
    rows = learn(tmp_path / "a.csv", "\n".join(["x;z;y", *lines]))
    assert rows.X.iloc[:, 0].to_numpy()[:2].tolist() == [1137.0, 1140.0]
    assert noted(rows)[0].startswith("column 'x': numbers, such as '1.234,5'")


def test_models_of_python_find_out_how_each_file_is_written(tmp_path):

    frame = pandas.DataFrame({"x": np.linspace(1, 9, 40).round(3), "z": np.arange(40) % 5 + 0.5})
    estimator = TensorTrainRegressor(rank=2, max_sweeps=1, random_state=0).fit(frame, frame["x"] + frame["z"])
    estimator.save(tmp_path / "m")
    frame.to_csv(tmp_path / "de.csv", index=False, sep=";", decimal=",", float_format="%.3f")
    frame.to_csv(tmp_path / "us.csv", index=False)
    model, told = load_table_model(tmp_path / "m"), []
    for name in ("us.csv", "de.csv", "us.csv"):
        np.testing.assert_allclose(model.predict(tmp_path / name), estimator.predict(frame), rtol=1e-5, atol=1e-5)
    with model.open(tmp_path / "de.csv") as table:
        list(model.blocks(table, say=told.append))
    assert told[0].startswith("note: column 'x': numbers, such as '1.234,5'")


def test_targets_of_python_models(tmp_path):
    """Several of them, and those that stand beside the columns of an array."""
    X = np.random.default_rng(0).uniform(-1, 1, (30, 2)).round(3)
    y = np.stack([X[:, 0], X[:, 1]], axis=1)
    TensorTrainRegressor(rank=2, max_sweeps=1, random_state=0).fit(X, y).save(tmp_path / "two")
    np.savetxt(tmp_path / "a.csv", np.column_stack([y[:, 0], X, y[:, 1]]), delimiter=",", header="u,a,b,v", comments="")
    model = load_table_model(tmp_path / "two")
    assert model.evaluate(tmp_path / "a.csv", target=["u", "v"])["rmse"] < 0.05
    assert model.evaluate(tmp_path / "a.csv", target=[0, -1])["n"] == 30
    with pytest.raises(TableError, match="the model predicts 2 columns, but 1 targets are named: u"):
        model.evaluate(tmp_path / "a.csv", target="u")


def test_a_decimal_counts_for_the_target_too(tmp_path):
    rows = learn(
        tmp_path / "a.csv", "x;y\n" + "".join(f"{k / 4};{k / 8 + 2000}\n" for k in range(40)), task="regression"
    )
    model = fitted(rows, TensorTrainRegressor(rank=2, max_sweeps=1, random_state=0))
    (tmp_path / "de.csv").write_text(
        "x;y\n"
        + "".join(
            f"{k / 4};2.00{k // 8},{k % 8 * 125:03d}\n".replace(f"{k / 4};", f"{k / 4};".replace(".", ","))
            for k in range(40)
        )
    )
    with pytest.raises(TableError, match=r"decimal=','"):
        model.evaluate(tmp_path / "de.csv")
    assert model.evaluate(tmp_path / "de.csv", decimal=",")["rmse"] < 0.5


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_truth_as_target(tmp_path, kind):

    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"x": np.arange(40) % 9, "y": np.arange(40) % 9 > 4})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    model = fit_table(tmp_path / f"a.{kind}", "y", folds=0)
    assert list(map(str, model.estimator.classes_)) == ["False", "True"]
    TensorTrainClassifier(**GIVEN).fit(frame[["x"]], frame["y"]).save(tmp_path / "m")
    for other in ("csv", "parquet"):
        assert model.evaluate(tmp_path / f"a.{other}")["error"] < 0.2
        assert load_table_model(tmp_path / "m").evaluate(tmp_path / f"a.{other}", target="y")["error"] < 0.2


def test_counts_are_no_identifiers_but_gaps_hide_none(tmp_path):
    lines = [
        f"{7 * k % 200},{3 * k + 5},{k},{'' if k == 3 else 900 + k},{'ab'[k % 2] if k > 2 else ''}" for k in range(60)
    ]
    rows = learn(tmp_path / "a.csv", "\n".join(["Number of employees,num_visits,t,customer_id,y", *lines]))
    assert list(rows.X) == ["Number of employees", "num_visits", "t"]


def test_options_that_are_one_text(tmp_path):
    text = "a,b,ab,y\n" + "".join(f"{k % 3},{k % 5},{k % 7},{'uv'[k % 2]}\n" for k in range(30))
    assert learn(tmp_path / "a.csv", text, target="y", drop="ab").X.columns.tolist() == ["a", "b"]
    assert learn(tmp_path / "a.csv", text, target="y", missing="13").n_missing == 0
    with pytest.raises(TableError, match="task='Classification' must be one of 'auto'"):
        TableOptions("y", task="Classification")
    with pytest.raises(TableError, match="folds='1' must be 0 or at least 2"):
        fit_table(tmp_path / "a.csv", "y", folds=1)
    (tmp_path / "none.csv").write_text("a,b,ab\n")
    assert fit_table(tmp_path / "a.csv", "y", folds=0).predict(tmp_path / "none.csv").shape == (0,)


def test_usual_missing_texts(tmp_path):
    text = "x,y\n" + "".join(f"{('NA', '-', 'u')[k % 3]},{'ab'[k % 2]}\n" for k in range(30))
    assert learn(tmp_path / "a.csv", text, missing="-").n_missing == 20
    assert learn(tmp_path / "a.csv", text, usual_missing=False).n_missing == 0


def test_labels_with_fractions_and_dates(tmp_path):
    refused(tmp_path, "1,0.5\n2,1.5\n", "numbers with fractions, which cannot be labels", task="classification")
    refused(tmp_path, "1,2024-01-02\n2,2024-05-06\n", "holds dates; regression needs numbers, and labels are text")


def test_rows_without_target_are_counted_in_all_blocks(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("x,y\n" + "".join(f"{k % 9},{'ab'[k % 2]}\n" for k in range(40)))
    model = fit_table(path, "y", folds=0)
    path.write_text("x,y\n" + "1,a\n" * 9000 + "1,\n" * 20_000)
    told = []
    with model.open(path) as table:
        model.answers(table, say=told.append)
    assert told == ["note: 20000 rows without target are left out"]


def test_dates_in_the_text_of_a_frame_are_written_as_in_training_in_a_file(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(
        {"when": [f"{(k + 1) % 28 + 1:02}/{k % 12 + 1:02}/2024" for k in range(84)], "x": np.arange(84) % 5}
    )
    model = TensorTrainRegressor(**GIVEN).fit(frame, np.arange(84) % 28)
    model.save(tmp_path / "m")
    frame[:9].to_csv(tmp_path / "a.csv", index=False)  # as good as with the month first
    found = load_table_model(tmp_path / "m").predict(tmp_path / "a.csv")
    np.testing.assert_allclose(found, model.predict(frame[:9]), rtol=1e-5, atol=1e-5)


def test_labels_with_a_decimal_comma(tmp_path):
    (tmp_path / "a.csv").write_text("x;y\n" + "".join(f"{k % 9};{k % 2},0\n" for k in range(40)))
    model = fit_table(tmp_path / "a.csv", "y", folds=0)
    assert model.estimator.classes_.tolist() == [0, 1]
    assert model.evaluate(tmp_path / "a.csv")["n"] == 40


def test_a_file_is_fitted_as_the_frame_that_pandas_reads(tmp_path):
    rng, n = np.random.default_rng(0), 90
    frame = pandas.DataFrame(
        {
            "size": rng.normal(size=n).round(3),
            "rooms": rng.integers(1, 6, n),
            "town": rng.choice(["Bern", "Graz", "Linz"], n),
            "sold": [f"2024-{k % 12 + 1:02}-{k % 27 + 1:02}" for k in range(n)],
        }
    )
    frame["price"] = frame["size"] + frame["rooms"] * (frame["town"] == "Bern")
    frame.loc[::7, ["size", "town", "sold"]] = None
    frame.to_csv(tmp_path / "a.csv", index=False)
    rows = pandas.read_csv(tmp_path / "a.csv")
    model = fit_table(tmp_path / "a.csv", "price", folds=0)
    X = rows.drop(columns="price")
    estimator = TensorTrainRegressor(random_state=0).fit(X, rows["price"])
    assert model.fitted.columns.feature_names == estimator.model_.columns.feature_names
    expected = estimator.predict(X)
    np.testing.assert_array_equal(model.predict(tmp_path / "a.csv"), expected)
    estimator.save(tmp_path / "m")
    np.testing.assert_allclose(
        load_table_model(tmp_path / "m").predict(tmp_path / "a.csv"), expected, rtol=1e-5, atol=1e-5
    )
