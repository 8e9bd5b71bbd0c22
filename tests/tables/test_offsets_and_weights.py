"""Offsets and weights from columns of tables, and figures of counts and amounts."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import mean_gamma_deviance, mean_pinball_loss, mean_poisson_deviance, roc_auc_score

import polytrain
from polytrain import ModelFileError, TensorTrainClassifier, TensorTrainRegressor
from polytrain.cli import main
from polytrain.evaluation import Answers, constant_answers, linear_answers, loss_metrics, row_costs
from polytrain.reporting.accuracy import bootstrap
from polytrain.tables import TableError, fit_table, load_table_model
from polytrain.texts import number_text, percent_text

pytestmark = pytest.mark.filterwarnings("ignore::polytrain.DataWarning")

# Model files are rounded.
FILE = 1e-5

GIVEN = {"basis": "power", "rank": 2, "alpha": 1e-3, "max_sweeps": 2}
FAST = ["--basis", "power", "--rank", "2", "--alpha", "1e-3", "--max-sweeps", "2"]


def claims(n_rows, seed):
    """Counts of a rate that is not linear in the logarithm, with exposures and weights, some of which are zero."""
    rng = np.random.default_rng(seed)
    a, b = rng.uniform(-1, 1, (2, n_rows))
    kind, log_t = rng.choice(["red", "blue"], n_rows), np.log(rng.uniform(0.2, 5.0, n_rows))
    count = rng.poisson(np.exp(log_t + 2 * a * b - (kind == "red")))
    weight = rng.integers(0, 4, n_rows) / 2
    return pd.DataFrame({"w": weight, "a": a, "b": b, "kind": kind, "log_t": log_t, "count": count})


def write(path, frame, **settings):
    frame.to_csv(path, index=False, **settings)  # with all digits
    return str(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("claims")
    write(folder / "train.csv", claims(300, 0))
    write(folder / "test.csv", claims(200, 1))
    return folder


@pytest.fixture(scope="module")
def fitted(folder):
    """The model file that the command line writes, and the same fit in Python."""
    argv = ["fit", str(folder / "train.csv"), "--target", "count", "--loss", "poisson", "--quiet", "--folds", "2"]
    assert main([*argv, "--offset", "log_t", "--weight", "w", *FAST, "--out", str(folder / "m")]) == 0
    rows = claims(300, 0)
    estimator = TensorTrainRegressor(loss="poisson", random_state=0, **GIVEN)
    columns = rows[["a", "b", "kind"]]
    return load_table_model(folder / "m"), estimator.fit(columns, rows["count"], rows["w"], offset=rows["log_t"])


def lines(capsys, *argv):
    assert main(list(map(str, argv))) == 0
    return capsys.readouterr().out


def test_the_command_line_fits_what_python_fits(fitted, folder, capsys):
    model, expected = fitted
    assert model.estimator.feature_names_in_.tolist() == ["a", "b", "kind"]
    assert (model.layout.offset, model.layout.weight) == ("log_t", "w")
    assert (model.training["offset"], model.training["weight"]) == ("log_t", "w")
    test = claims(200, 1)
    predicted = expected.predict(test[["a", "b", "kind"]], offset=test["log_t"])
    np.testing.assert_allclose(model.predict(folder / "test.csv"), predicted, rtol=FILE)
    told = lines(capsys, "predict", folder / "m", folder / "test.csv").splitlines()
    np.testing.assert_allclose(np.array(told[1:], dtype=float), predicted, rtol=FILE)
    in_python = fit_table(
        folder / "train.csv", "count", loss="poisson", offset="log_t", weight="w", folds=0, seed=0, **GIVEN
    )
    np.testing.assert_array_equal(in_python.predict(folder / "test.csv"), predicted)
    blocks = [core for train in model.fitted.cores for core in train]
    for core, other in zip(blocks, expected.model_.cores[0], strict=True):
        np.testing.assert_allclose(core, other, rtol=0, atol=FILE * np.abs(other).max())


def test_evaluation_is_weighted_and_has_the_deviance_first(fitted, folder, capsys):
    model, expected = fitted
    test = claims(200, 1)
    features, weights = test[["a", "b", "kind"]], test["w"]
    predicted = expected.predict(features, offset=test["log_t"])
    figures = json.loads(lines(capsys, "evaluate", folder / "m", folder / "test.csv", "--json"))
    assert list(figures) == ["n", "deviance", "d2", "rmse", "mae", "r2", "largest_error"]
    assert figures["n"] == (weights > 0).sum()
    deviance = mean_poisson_deviance(test["count"], predicted, sample_weight=weights)
    assert figures["deviance"] == pytest.approx(deviance, rel=FILE)
    score = expected.score(features, test["count"], weights, offset=test["log_t"])
    assert figures["d2"] == pytest.approx(score, rel=FILE)
    assert figures["rmse"] == pytest.approx(np.sqrt(np.average((predicted - test["count"]) ** 2, weights=weights)))
    # Rows that are there twice count as those of weight two.
    twice = test.loc[test.index.repeat((2 * weights).astype(int))].assign(w=1.0)
    again = model.evaluate(write(folder / "twice.csv", twice))
    assert {name: again[name] for name in figures if name != "n"} == pytest.approx(
        {name: value for name, value in figures.items() if name != "n"}, rel=1e-9
    )


def test_a_linear_model_of_the_training_rows(fitted, folder):
    figures = fitted[0].evaluate(folder / "test.csv", train=folder / "train.csv")
    train, test = (rows[rows["w"] > 0] for rows in (claims(300, 0), claims(200, 1)))

    def design(rows):
        numbers = (rows[["a", "b"]] - train[["a", "b"]].mean()) / train[["a", "b"]].std(ddof=0)
        return np.column_stack([numbers, rows["kind"] == "blue", rows["kind"] == "red"])

    exposure = np.exp(train["log_t"])
    deviances = []
    for alpha in (1e-6, 1e-4, 1e-2, 1.0):
        linear = PoissonRegressor(alpha=alpha, max_iter=200)
        linear.fit(design(train), train["count"] / exposure, sample_weight=train["w"] * exposure)
        guess = linear.predict(design(test)) * np.exp(test["log_t"])
        deviances.append(mean_poisson_deviance(test["count"], guess, sample_weight=test["w"]))
    # Which alpha it takes is decided by folds of the training rows.
    assert min(abs(figures["linear_deviance"] - deviance) for deviance in deviances) < 1e-5
    assert figures["deviance"] < figures["linear_deviance"]
    assert figures["d2"] > figures["linear_d2"]


def test_fit_reports_deviances_beside_simple_models(fitted):
    left_out = fitted[0].estimator.left_out_
    assert left_out.where.startswith(f"all {(claims(300, 0)['w'] > 0).sum()} rows in 2 folds")
    model, linear, constant = left_out.model, left_out.linear, left_out.constant
    assert model["deviance"] < linear["deviance"] < 1.05 * constant["deviance"]
    assert 0.0 < model["d2"] < 1.0
    assert linear["d2"] < model["d2"]
    assert 0.0 < fitted[0].training["training_deviance"] < model["deviance"]


def test_few_counts_are_no_labels_if_the_loss_is_one_of_numbers(folder):
    told = []
    few = claims(100, 0).assign(count=lambda rows: rows["count"].clip(upper=3))
    fit_table(write(folder / "few.csv", few), "count", loss="poisson", folds=0, say=told.append, **GIVEN)
    assert "100 rows, 5 columns (with header), 0 missing cells; regression" in told[0]


def test_the_range_of_the_exposures_is_told(folder):
    told = []
    given = {"loss": "poisson", "offset": "log_t", "folds": 0, "say": told.append}
    fit_table(folder / "train.csv", "count", **given, **GIVEN)
    assert any(line.startswith("note: offset 'log_t': exposures, exp(offset), are 0.2") for line in told)


@pytest.mark.parametrize(
    ("role", "cell", "wanted"),
    [
        ("weight", "-1", "should be a number that is not negative, but here '-1'"),
        ("weight", "", "should be a number that is not negative, but here ''"),
        ("weight", "many", "should be a number that is not negative, but here 'many'"),
        ("weight", "inf", "should be a number that is not negative, but here 'inf'"),
        ("offset", "NA", "should be a number from -700 to 700, the logarithm of the exposure and not .* here 'NA'"),
        ("offset", "1000", "should be a number from -700 to 700, the logarithm of the exposure and not .* here '1000'"),
        ("offset", "2024-01-01", "should be a number from -700 to 700"),
    ],
)
def test_bad_cells_are_named(fitted, folder, tmp_path, role, cell, wanted):
    column = {"weight": "w", "offset": "log_t"}[role]
    rows = claims(300, 0).astype({column: object})
    rows.loc[7, column] = cell
    path = write(tmp_path / "bad.csv", rows)
    remedy = f"Fix the cell, leave the row out, or name another column with {role}=...."
    with pytest.raises(TableError, match=f"bad.csv, line 9: the {role} '{column}' {wanted}") as caught:
        fit_table(path, "count", loss="poisson", **{role: column}, **GIVEN)
    assert str(caught.value).endswith(remedy)
    with pytest.raises(TableError, match=f"bad.csv, line 9: the {role} '{column}' {wanted}"):
        fitted[0].evaluate(path)
    # Rows without target are not learned from, so it does not matter there.
    rows = rows.astype({"count": object})
    rows.loc[7, "count"] = ""
    fit_table(write(path, rows), "count", loss="poisson", folds=0, **{role: column}, **GIVEN)


def test_columns_of_text_and_weights_of_zero(fitted, folder, tmp_path):
    with pytest.raises(
        TableError, match=r"train.csv, line 2: the weight 'kind' should be a number .* here '(red|blue)'"
    ):
        fit_table(folder / "train.csv", "count", loss="poisson", weight="kind")
    nothing = write(tmp_path / "zero.csv", claims(50, 0).assign(w=0))
    with pytest.raises(TableError, match=r"zero.csv: the weight 'w' is zero in all rows. Name another .* weight=..."):
        fit_table(nothing, "count", loss="poisson", weight="w")
    with pytest.raises(TableError, match=r"zero.csv holds no row with a target and a weight above 0. .* weight=..."):
        fitted[0].evaluate(nothing)


def test_columns_that_are_something_else_already(folder):
    for more in ({"offset": "count"}, {"weight": "w", "drop": "w"}, {"offset": "w", "weight": "w"}):
        with pytest.raises(TableError, match="cannot be dropped, encoded or named twice"):
            fit_table(folder / "train.csv", "count", loss="poisson", **more)


def test_losses_without_offset(folder, capsys):
    argv = ["fit", str(folder / "train.csv"), "--target", "count", "--out", str(folder / "none"), "--offset", "log_t"]
    for more in (["--loss", "squared", "--task", "regression"], ["--task", "classification"]):
        assert main([*argv, *more]) == 2
        message = "--offset log_t applies to counts and amounts only. Leave it out, or pass --loss poisson or "
        message += "--loss gamma."
        assert message in capsys.readouterr().err
    fit_table(folder / "train.csv", "a", folds=0, **GIVEN).save(folder / "plain")
    assert main(["predict", str(folder / "plain"), str(folder / "test.csv"), "--offset", "log_t"]) == 2
    assert "--offset log_t: this model has no offset. Leave it out" in capsys.readouterr().err
    assert not (folder / "none").exists()


def test_predictions_ask_for_the_offset(fitted, folder, tmp_path, capsys):
    """Not for the weight; and explanations ask for neither."""
    test = claims(200, 1)
    expected = fitted[0].predict(folder / "test.csv")
    path = write(tmp_path / "new.csv", test.drop(columns=["w", "count", "log_t"]).assign(log_years=test["log_t"]))
    assert main(["predict", str(folder / "m"), path]) == 2
    message = capsys.readouterr().err
    assert "new.csv lacks the offset log_t; it has a, b, kind, log_years. Add it, or name another column" in message
    assert "with --offset." in message
    told = lines(capsys, "predict", folder / "m", path, "--offset", "log_years").splitlines()
    np.testing.assert_allclose(np.array(told[1:], dtype=float), expected, rtol=FILE)
    lines(capsys, "explain", folder / "m", path)
    lines(capsys, "explain", folder / "m", path, "--row", "3")
    with pytest.raises(TableError, match=r"lacks the weight w; .* Add it, or name another column with weight=..."):
        fitted[0].evaluate(write(path, test.drop(columns="w")))
    ones = write(path, test.assign(one=1).drop(columns="w"))
    figures = fitted[0].evaluate(ones, weight="one")
    assert figures["deviance"] == pytest.approx(mean_poisson_deviance(test["count"], expected), rel=1e-12)


def test_tables_without_names(folder, tmp_path):
    train, test = claims(300, 0), claims(200, 1)
    path = write(tmp_path / "train.csv", train, header=False)
    model = fit_table(path, -1, loss="poisson", offset=4, weight=0, folds=0, **GIVEN)
    expected = model.predict(write(tmp_path / "all.csv", test, header=False))
    for gone in (["count"], ["w", "count"]):
        some = write(tmp_path / "some.csv", test.drop(columns=gone), header=False)
        np.testing.assert_allclose(model.predict(some), expected, rtol=FILE)


def test_models_of_python_are_told_where_the_offset_is(fitted, folder, tmp_path):
    fitted[1].save(tmp_path / "m")
    model, test = load_table_model(tmp_path / "m"), claims(200, 1)
    expected = fitted[0].predict(folder / "test.csv")
    np.testing.assert_allclose(model.predict(folder / "test.csv", offset="log_t"), expected, rtol=FILE)
    figures = model.evaluate(folder / "test.csv", target="count", offset="log_t", weight="w")
    assert figures == fitted[0].evaluate(folder / "test.csv")
    # An array has no names: a column that is named is not one of the features.
    X = test[["a", "b"]].to_numpy()
    numbers = TensorTrainRegressor(loss="poisson", random_state=0, **GIVEN).fit(X, test["count"])
    numbers.save(tmp_path / "n")
    np.save(tmp_path / "rows.npy", test[["log_t", "a", "b"]].to_numpy())
    predicted = load_table_model(tmp_path / "n").predict(tmp_path / "rows.npy", offset=0)
    np.testing.assert_allclose(predicted, numbers.predict(X, offset=test["log_t"]), rtol=FILE)


def test_decimal_commas_and_typed_files(fitted, folder, tmp_path):
    expected = fitted[0].predict(folder / "test.csv")
    comma = write(tmp_path / "comma.csv", claims(200, 1), sep=";", decimal=",")
    np.testing.assert_allclose(fitted[0].predict(comma, decimal=","), expected, rtol=FILE)
    claims(200, 1).to_parquet(tmp_path / "test.parquet")
    np.testing.assert_allclose(fitted[0].predict(tmp_path / "test.parquet"), expected, rtol=FILE)


def test_weights_of_classes(folder, tmp_path):
    rows, test = claims(300, 0), claims(200, 1)
    path = write(tmp_path / "train.csv", rows.drop(columns="count"))
    model = fit_table(path, "kind", weight="w", seed=0, folds=2, **GIVEN)
    columns = ["a", "b", "log_t"]
    expected = TensorTrainClassifier(random_state=0, **GIVEN).fit(rows[columns], rows["kind"], rows["w"])
    sure = expected.predict_proba(test[columns])
    np.testing.assert_allclose(model.predict(folder / "test.csv", probabilities=True), sure, rtol=FILE)
    figures, wrong = model.evaluate(folder / "test.csv"), expected.predict(test[columns]) != test["kind"]
    assert figures["error"] == pytest.approx(np.average(wrong, weights=test["w"]))
    assert figures["auc"] == pytest.approx(roc_auc_score(test["kind"] == "red", sure[:, 1], sample_weight=test["w"]))
    assert figures["log_loss"] == pytest.approx(
        np.average(-np.log(np.where(test["kind"] == "red", sure[:, 1], sure[:, 0])), weights=test["w"])
    )
    assert np.sum(figures["confusion"]) == figures["n"] == (test["w"] > 0).sum()


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ({"offset": "a"}, "columns of the table are not those of the model"),
        ({"weight": "old"}, "columns of the table are not those of the model"),
        ({"weight": "count"}, "targets, offset and weight of the table should be different columns"),
    ],
)
def test_layouts_that_cannot_be_are_not_stored_or_read(fitted, tmp_path, layout, message):
    from dataclasses import replace

    from polytrain.tables.layout import read_section, write_section

    model = fitted[0]
    section = write_section(model.layout, model.training, model.estimator)
    assert read_section(json.loads(json.dumps(section)), model.estimator) == (model.layout, model.training)
    section["layout"] |= layout
    with pytest.raises(ValueError, match=message):
        read_section(json.loads(json.dumps(section)), model.estimator)
    if "different" not in message:
        with pytest.raises(ModelFileError, match=message):
            replace(model, layout=replace(model.layout, **layout)).save(tmp_path / "m")


# --- metrics by loss ---


@pytest.mark.parametrize(("loss", "metric"), [("poisson", mean_poisson_deviance), ("gamma", mean_gamma_deviance)])
def test_metrics_of_counts_and_amounts(loss, metric):
    rng = np.random.default_rng(0)
    y, predicted, weights = rng.uniform(1, 5, (3, 50))
    answers = Answers(y, predicted, loss=loss, weights=weights)
    (name, (words, measure)), (second, (_, explained)), *_ = loss_metrics(loss).items()
    assert (name, second, words) == ("deviance", "d2", metric.__name__.replace("_", " ").replace("poisson", "Poisson"))
    expected = metric(y, predicted, sample_weight=weights)
    assert measure(answers) == pytest.approx(expected, rel=1e-12)
    assert np.average(row_costs(answers), weights=weights) == pytest.approx(expected, rel=1e-12)
    constant = metric(y, np.full(50, np.average(y, weights=weights)), sample_weight=weights)
    assert explained(answers) == pytest.approx(1.0 - expected / constant)
    assert explained(constant_answers(answers, answers)) == pytest.approx(0.0, abs=1e-12)
    low, high = bootstrap(answers, is_rmse=False)
    assert low < expected < high
    both = Answers(np.stack([y, y], axis=1), np.stack([predicted, predicted], axis=1), loss=loss, weights=weights)
    assert measure(both) == pytest.approx(expected, rel=1e-12)
    assert measure(Answers(-y, predicted, loss=loss)) is None
    assert explained(Answers(-y, predicted, loss=loss)) is None
    assert explained(Answers(y[:1], predicted[:1], loss=loss)) is None  # no deviance to explain


def test_metrics_of_quantiles():
    y, predicted = np.random.default_rng(0).uniform(1, 5, (2, 50))
    answers = Answers(y, predicted, loss="quantile(0.9, 0.1)")
    words, measure = loss_metrics(answers.loss)["deviance"]
    assert words == "mean pinball loss"
    expected = mean_pinball_loss(y, predicted, alpha=0.9)
    assert measure(answers) == pytest.approx(expected)
    assert row_costs(answers).mean() == pytest.approx(expected)


def test_a_linear_model_of_amounts_finds_its_coefficients():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (400, 2))
    offset = rng.uniform(-1, 1, 400)
    mean = np.exp(1.0 + X[:, 0] - 0.5 * X[:, 1])
    answers = Answers(mean * np.exp(offset) * rng.gamma(50.0, 0.02, 400), mean, loss="gamma", offset=offset)
    linear = linear_answers(X, answers, X, answers, [])
    np.testing.assert_allclose(linear.predicted, mean * np.exp(offset), rtol=0.05)


# --- the report ---


def test_reports_lead_with_the_deviance(fitted, folder, tmp_path, capsys):
    train, test = claims(300, 0), claims(200, 1)
    argv = ["report", folder / "m", folder / "test.csv", "--train", folder / "train.csv", "--out", tmp_path / "r.html"]
    lines(capsys, *argv)
    page = (tmp_path / "r.html").read_text()
    figures = fitted[0].evaluate(folder / "test.csv", train=folder / "train.csv")
    for words in (
        f"mean Poisson deviance is {number_text(figures['deviance'])}",
        "linear model (Poisson regression)",
        "always the mean rate",
        "D²",
        "rise of the mean Poisson deviance",
    ):
        assert words in page
    columns = ["a", "b", "kind"]
    again = polytrain.report(
        fitted[1],
        test[columns],
        test["count"],
        sample_weight=test["w"],
        offset=test["log_t"],
        X_train=train[columns],
        y_train=train["count"],
        sample_weight_train=train["w"],
        offset_train=train["log_t"],
    ).html

    def lead(page):
        return page[page.index("mean Poisson deviance is") : page.index("</p>", page.index("deviance is"))]

    assert lead(again) == lead(page)


def test_reports_of_amounts_that_are_zero(tmp_path):
    X = np.random.default_rng(0).uniform(1, 2, (60, 2))
    model = TensorTrainRegressor(loss="gamma", random_state=0, **GIVEN).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"loss='gamma' is defined for targets that are positive, got 0.0"):
        polytrain.report(model, X, np.r_[0.0, X[1:, 0]])


@pytest.mark.slow
def test_reports_of_weighted_classes(folder):
    rows = claims(300, 0)
    model = TensorTrainClassifier(random_state=0, **GIVEN).fit(rows[["a", "b"]], rows["kind"])
    page = polytrain.report(model, rows[["a", "b"]], rows["kind"], sample_weight=rows["w"]).html
    wrong = model.predict(rows[["a", "b"]]) != rows["kind"]
    share = percent_text(np.average(wrong, weights=rows["w"]))
    assert f"The model gets {share}" in page.replace("\n", " ").replace("\xa0", " ")
