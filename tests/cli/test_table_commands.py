"""fit, predict, evaluate, explain, info, export on small tables."""

import csv
import ctypes
import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import polytrain
from polytrain.cli import main
from polytrain.cli.main import make_parser
from polytrain.tables import TableOptions, load_table_model, open_table_file
from polytrain.tables.training_table import read_training_table

GIVEN = ["--basis", "spline", "--bandwidth", "1", "--rank", "2", "--alpha", "1e-3", "--max-sweeps", "1"]
FAST = [*GIVEN, "--quiet"]


def run(capsys, *argv):
    """Run a command that must succeed; return its standard output."""
    code = main([str(word) for word in argv])
    out, err = capsys.readouterr()
    assert code == 0, err
    return out


@pytest.fixture
def people(tmp_path):
    """A table with everything: numbers, categories, missing cells, an identifier."""
    rng = np.random.default_rng(0)
    n = 120
    age, job, rank = rng.integers(20, 70, n), rng.choice(["cook", "smith", "clerk"], n), rng.integers(1, 9, n)
    rich = np.where(age + 10 * (job == "smith") + rng.normal(0, 3, n) > 45, "yes", "no")
    path = tmp_path / "people.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "age", "job", "grade", "rich"])
        for k in range(n):
            writer.writerow([f"p{k}", "?" if k % 17 == 3 else age[k], "" if k % 19 == 5 else job[k], rank[k], rich[k]])
    return path


@pytest.fixture
def model(people, tmp_path, capsys):
    path = tmp_path / "rich.polytrain"
    argv = ["fit", people, "--target", "rich", "--drop", "id", "--loss", "logistic", "--folds", "0", "--out", path]
    run(capsys, *argv, *FAST)
    return path


@pytest.fixture
def chosen(people, tmp_path, capsys):
    """A model that has chosen everything itself."""
    path = tmp_path / "chosen.polytrain"
    run(capsys, "fit", people, "--target", "rich", "--drop", "id", "--folds", "0", "--quiet", "--out", path)
    return path


def test_fit_reports_what_it_did(people, tmp_path, capsys):
    out = run(
        capsys, "fit", people, "--target", "rich", "--drop", "id", "--out", tmp_path / "m", "--json",
        "--alpha", "1e-3", "--quiet",
    )  # fmt: skip
    facts = json.loads(out)
    assert facts["task"] == "classification"
    assert (facts["rows"], facts["left_out"]["where"]) == (
        120,
        "all 120 rows in 3 folds, all settings chosen anew in each",
    )
    assert 0 <= facts["left_out"]["model"]["error"] < 0.3
    assert facts["alpha"] == 1e-3
    model = load_table_model(tmp_path / "m")
    assert model.estimator.left_out_._asdict() == facts["left_out"]
    # A column is one feature, and what is not given is chosen.
    assert model.view.feature_names == ("age", "job", "grade")
    age, job, grade = model.estimator.maps_
    assert facts["basis"] == f"{age.basis}, category"
    assert (job.basis, grade.basis) == ("category", age.basis)
    assert facts["rank"] == max(model.estimator.plan_.ranks)
    assert facts["bandwidth"] == model.estimator.choice_.bandwidth


def test_the_model_is_written_before_its_error_is_measured(people, tmp_path, capsys, monkeypatch):
    def fail(*args):
        raise MemoryError

    monkeypatch.setattr("polytrain.tables.fitting._cross_validate", fail)
    argv = ["fit", people, "--target", "rich", "--drop", "id", "--out", tmp_path / "m", *FAST]
    assert main([str(word) for word in argv]) == 2
    assert load_table_model(tmp_path / "m").training["file"] == "people.csv"


def test_folds_measure_the_whole_procedure(people, tmp_path, capsys):
    """The error is that of scikit-learn's cross-validation of the same estimator."""
    argv = ["fit", people, "--target", "rich", "--drop", "id", "--json", "--quiet", "--folds", "4", "--seed", "3"]
    facts = json.loads(run(capsys, *argv, "--alpha", "1e-2", "--out", tmp_path / "m"))
    with open_table_file(people) as table:
        rows = read_training_table(table, TableOptions("rich", drop=["id"]))
    estimator = polytrain.TensorTrainClassifier(alpha=1e-2, random_state=3)
    folds = StratifiedKFold(4, shuffle=True, random_state=3)
    scores = cross_val_score(estimator, rows.X, rows.y, cv=folds)
    assert facts["left_out"]["model"]["error"] == pytest.approx(1 - scores.mean())


def test_simple_models_on_the_same_folds(tmp_path, capsys):
    """Those of scikit-learn, and the page about the model quotes them."""
    X, y = load_diabetes(return_X_y=True)
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    argv = ["fit", tmp_path / "rows.npz", "--target", "y", "--folds", "4", "--seed", "3", "--json"]
    facts = json.loads(run(capsys, *argv, *FAST, "--out", tmp_path / "m"))
    folds = KFold(4, shuffle=True, random_state=3)
    for name, estimator in (
        ("linear", make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 4, 15)))),
        ("constant", DummyRegressor()),
    ):
        scores = cross_val_score(estimator, X, y, cv=folds, scoring="neg_root_mean_squared_error")
        assert facts["left_out"][name]["rmse"] == pytest.approx(-scores.mean())
    constant, linear = (facts["left_out"][name]["rmse"] for name in ("constant", "linear"))
    assert linear < constant
    run(capsys, "report", tmp_path / "m", tmp_path / "rows.npz", "--out", tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"the best constant {constant:.5g}, a linear model {linear:.5g}" in page
    assert "linear model (ridge regression)" not in page


def test_simple_models_of_classes(people, tmp_path, capsys):
    argv = [
        "fit",
        people,
        "--target",
        "rich",
        "--drop",
        "id",
        "--metric",
        "log_loss",
        "--json",
        "--out",
        tmp_path / "m",
    ]
    facts = json.loads(run(capsys, *argv, *FAST, "--loss", "logistic"))
    constant, linear = (facts["left_out"][name] for name in ("constant", "linear"))
    assert linear["log_loss"] < 0.5 < constant["log_loss"] < 0.75
    assert next(iter(facts["left_out"]["model"])) == "log_loss"  # what was asked for comes first


def test_a_class_with_one_row(people, tmp_path, capsys):
    people.write_text(people.read_text() + "q,33,cook,2,perhaps\n")
    argv = ["fit", people, "--target", "rich", "--drop", "id", "--json", "--quiet", "--out", tmp_path / "m"]
    facts = json.loads(run(capsys, *argv))
    assert 0 < facts["left_out"]["model"]["error"] < 0.5
    assert facts["rows"] == 121
    run(capsys, *argv, "--folds", "0")
    assert len(run(capsys, "predict", tmp_path / "m", people).split()) == 122


def test_fit_talks_on_stderr_only(people, tmp_path, capsys):
    argv = ["fit", str(people), "--target", "rich", "--drop", "id", "--out", str(tmp_path / "m"), "--folds", "2"]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert "120 rows, 3 columns (with header), 14 missing cells; classification" in err
    assert "\nfitting 120 rows, 3 columns\nchosen: basis '" in err
    assert "\nfold 2 of 2: error " in err
    shown = str(polytrain.load(tmp_path / "m").summary())
    assert out.startswith(shown + "\nmodel ")
    assert "\n  on all 120 rows in 2 folds, " in shown
    assert "fold 1" not in out
    assert str(tmp_path / "m") in out


def test_predict_equals_the_estimator(model, people, tmp_path, capsys):
    loaded = load_table_model(model)
    with loaded.open(people) as table:
        X = np.concatenate([block.X for block in loaded.blocks(table)])
    out = run(capsys, "predict", model, people, "--probabilities", "--keep", "id", "0")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["id", "prediction", "probability no", "probability yes"]
    assert [row["prediction"] for row in rows] == loaded.fitted.predict(X).tolist()
    assert [float(row["probability yes"]) for row in rows] == loaded.fitted.probabilities(X)[:, 1].tolist()
    assert rows[7]["id"] == "p7"
    run(capsys, "predict", model, people, "--out", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["prediction", *(row["prediction"] for row in rows)]


def test_data_warnings_are_notes(people, model, tmp_path, capsys):
    """What a fit warns of in Python, the command line says once; it also warns of rows unlike those in training."""
    lines = people.read_text().splitlines()
    again = ["job2", *("" if (job := line.split(",")[2]) == "" else f"a {job}" for line in lines[1:])]
    (tmp_path / "copy.csv").write_text("\n".join(map(",".join, zip(lines, again, strict=True))))
    argv = ["fit", tmp_path / "copy.csv", "--target", "rich", "--out", tmp_path / "m", "--folds", "2", *GIVEN]
    assert main([str(word) for word in argv]) == 0
    err = capsys.readouterr().err
    assert err.count("note: columns are nearly copies of each other (correlation of ranks): 'job', 'job2' (1.00).") == 1
    assert len(polytrain.load(tmp_path / "m").warnings_) == 1
    (tmp_path / "new.csv").write_text("age,job,grade\n" + "400,cook,2\n" * 3)
    assert main(["predict", str(model), str(tmp_path / "new.csv")]) == 0
    err = capsys.readouterr().err
    assert err.count("note: 3 of 3 rows lie outside of the range of the training rows, most often in column 'age'") == 1


def test_predict_missing_cells_and_new_categories(chosen, tmp_path, capsys):
    """Missing cells are a matter of course, new categories are counted and count as the mean."""
    (tmp_path / "new.csv").write_text("age,job,grade\n?,,?\n30,cook,2\n30,NA,2\n")
    rows = list(csv.DictReader(io.StringIO(run(capsys, "predict", chosen, tmp_path / "new.csv", "--probabilities"))))
    sure = [float(row["probability yes"]) for row in rows]
    assert len(set(sure)) == 3
    assert all(0 < probability < 1 for probability in sure)
    assert float(rows[1]["probability no"]) + sure[1] == pytest.approx(1)
    text = "age,job,grade,rich\n" + "".join(f"30,{job},2,no\n" for job in ("pilot", "abbot", "cook", "pilot", "x\x1b"))
    (tmp_path / "new.csv").write_text(text)
    note = "note: column 'job': 4 cells hold categories that the training did not have, such as 'abbot', 'pilot', 'x"
    for command in (["evaluate"], ["predict", "--probabilities"]):
        assert main([command[0], str(chosen), str(tmp_path / "new.csv"), *command[1:]]) == 0
        out, err = capsys.readouterr()
        assert err.count(note) == 1
        assert "\x1b" not in err
    fitted = load_table_model(chosen).fitted
    assert float(out.split("\n")[1].split(",")[-1]) == fitted.probabilities(np.array([[30.0, -1.0, 2.0]]))[0, 1]


def test_predict_needs_no_target_and_any_order(model, people, tmp_path, capsys):
    expected = run(capsys, "predict", model, people)
    rows = list(csv.reader(people.read_text().splitlines()))
    turned = tmp_path / "turned.tsv"
    turned.write_text("\n".join("\t".join(row[k] for k in (3, 2, 1)) for row in rows))
    assert run(capsys, "predict", model, turned) == expected


def test_evaluate(model, people, capsys):
    predicted = run(capsys, "predict", model, people).split()[1:]
    true = [row["rich"] for row in csv.DictReader(people.read_text().splitlines())]
    figures = json.loads(run(capsys, "evaluate", model, people, "--json"))
    assert figures["n"] == 120
    assert figures["error"] == pytest.approx(np.mean([a != b for a, b in zip(predicted, true, strict=True)]))
    assert figures["log_loss"] > 0
    text = run(capsys, "evaluate", model, people)
    assert f"\nerror{'':17}{100 * figures['error']:.2f} %\n" in text
    assert "confusion matrix" in text


@pytest.mark.parametrize("name", ["model", "chosen"])
def test_explain(request, name, people, capsys):
    model = request.getfixturevalue(name)
    found = json.loads(run(capsys, "explain", model, people, "--json", "--terms", "4"))
    assert sum(found["importances"].values()) == pytest.approx(1)
    assert list(found["importances"])[:2] == ["age", "job"]
    assert found["terms"][0]["term"] == "f1(age)"
    assert found["terms"][0]["effect"] > 0
    assert (len(found["terms"]), found["proven"], found["terms_of"]) == (4, True, "yes")
    # The model knows the distributions of its columns in training, categories and missing cells included.
    without = json.loads(run(capsys, "explain", model, "--json", "--terms", "4"))
    assert without["importances"] == pytest.approx(found["importances"], rel=1e-3)
    assert "importances of the columns, taken as independent\n  age " in run(capsys, "explain", model)


def test_explain_coefficients_of_polynomials(people, tmp_path, capsys):
    argv = ["fit", people, "--target", "rich", "--drop", "id", "age", "job", "--folds", "0", "--basis", "power"]
    run(capsys, *argv, "--quiet", "--out", tmp_path / "m")
    text = run(capsys, "explain", tmp_path / "m", people, "--units", "scaled")
    assert "largest coefficients, scaled features" in text
    assert text.split()[-1] in ("grade", "grade^2", "1")


def test_info(model, capsys):
    facts = json.loads(run(capsys, "info", model, "--json"))
    assert facts["classes"] == ["no", "yes"]
    assert facts["bytes"] == model.stat().st_size
    assert facts["features"] == ["age", "job", "grade"]
    assert facts["n_features"] == 3
    assert facts["columns"][1]["categories"] == ["clerk", "cook", "smith"]
    assert facts["chosen"] == []
    text = run(capsys, "info", model)
    assert "job: 3 categories, or missing: clerk, cook, smith\n" in text
    assert "age: number, or missing\n" in text
    assert "grade: number\n" in text
    assert "\nchosen\n" not in text


def test_info_tells_what_was_chosen(chosen, capsys):
    assert "\nchosen\n  functions '" in run(capsys, "info", chosen)
    assert json.loads(run(capsys, "info", chosen, "--json"))["chosen"]


COMMENT = """/* The features that the functions below take; true and false are 1 and 0:
   x[0]  age: number; NaN if missing
   x[1]  job: number of a category, -1 for any other, NaN if missing
         0: clerk
         1: cook
         2: smith
   x[2]  grade: number; NaN if missing
*/
"""


@pytest.mark.parametrize("name", ["model", "chosen"])
def test_export_c(request, name, people, tmp_path, capsys):
    compiler = shutil.which("cc") or shutil.which("gcc")
    model = request.getfixturevalue(name)
    run(capsys, "export", model, "--to", "c", "--name", "rich", "--out", tmp_path / "rich.c")
    source = (tmp_path / "rich.c").read_text()
    assert source.replace(" \n", "\n").startswith(COMMENT)
    assert "int rich_predict(const double *x)" in source
    if compiler:
        command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC", "-lm"]
        subprocess.run([*command, "rich.c", "-o", "rich.so"], cwd=tmp_path, check=True)
        predict = ctypes.CDLL(tmp_path / "rich.so").rich_predict
        loaded = load_table_model(model)
        X = features(loaded, people)
        labels = [loaded.estimator.classes_[predict((ctypes.c_double * 3)(*row))] for row in X.tolist()]
        assert labels == loaded.fitted.predict(X).tolist()


def features(model, path):
    """Rows of a table as the model takes them."""
    with model.open(path) as table:
        return np.concatenate([block.X for block in model.blocks(table)])


def test_names_cannot_leave_the_comment(tmp_path, capsys):
    (tmp_path / "a.csv").write_text('"*/ int x; /*",y\n1,2.5\n2,3.5\n4,1.5\n')
    run(capsys, "fit", tmp_path / "a.csv", "--target", "y", "--folds", "0", "--out", tmp_path / "m", *FAST)
    run(capsys, "export", tmp_path / "m", "--to", "c", "--out", tmp_path / "a.c")
    head = (tmp_path / "a.c").read_text().split("x[0]")[1].split("\n")[0]
    assert "*/" not in head
    assert "/*" not in head


@pytest.mark.parametrize("name", ["model", "chosen"])
def test_export_onnx(request, name, people, tmp_path, capsys):
    runtime = pytest.importorskip("onnxruntime")
    model = request.getfixturevalue(name)
    run(capsys, "export", model, "--to", "onnx", "--dtype", "float64", "--out", tmp_path / "rich.onnx")
    session = runtime.InferenceSession(tmp_path / "rich.onnx", providers=["CPUExecutionProvider"])
    known = session.get_modelmeta().custom_metadata_map
    assert json.loads(known["polytrain.features"]) == ["age", "job", "grade"]
    assert json.loads(known["polytrain.categories"]) == {"job": ["clerk", "cook", "smith"]}
    loaded = load_table_model(model)
    X = features(loaded, people)
    assert np.isnan(X).any()
    labels, sure = session.run(None, {"X": X})
    assert labels.tolist() == loaded.fitted.predict(X).tolist()
    np.testing.assert_allclose(sure, loaded.fitted.probabilities(X), rtol=1e-9)


def test_arrays_and_parquet_give_the_same_model(tmp_path, capsys):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    X, y = load_iris(return_X_y=True)
    names = [f"x{k}" for k in range(4)]
    columns = dict(zip([*names, "y"], [*X.T, y], strict=True))
    np.save(tmp_path / "a.npy", np.column_stack([X, y]))
    np.savez(tmp_path / "a.npz", **columns)
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    (tmp_path / "a.csv").write_text("\n".join(",".join(map(repr, row)) for row in np.column_stack([X, y]).tolist()))
    results = []
    for name in ("a.npy", "a.npz", "a.parquet", "a.csv"):
        run(capsys, "fit", tmp_path / name, "--target", "-1", "--folds", "0", "--out", tmp_path / "m", *FAST)
        results.append(run(capsys, "predict", tmp_path / "m", tmp_path / name))
        other = "a.npy" if name in ("a.csv", "a.npy") else "a.npz"
        assert run(capsys, "predict", tmp_path / "m", tmp_path / other) == results[0]
    assert set(results) == {results[0]}
    assert set(results[0].split()) == {"prediction", "0", "1", "2"}


def test_regression(tmp_path, capsys):
    X, y = load_diabetes(return_X_y=True)
    np.savez(tmp_path / "d.npz", X=X, y=y)
    run(capsys, "fit", tmp_path / "d.npz", "--target", "y", "--folds", "2", "--out", tmp_path / "m", "--json", *FAST)
    figures = json.loads(run(capsys, "evaluate", tmp_path / "m", tmp_path / "d.npz", "--json"))
    assert figures["n"] == 442
    assert 40 < figures["rmse"] < 60
    assert 0.3 < figures["r2"] < 0.7
    # Explain needs no table.
    assert "X8" in run(capsys, "explain", tmp_path / "m")


def test_models_saved_in_python(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    polytrain.TensorTrainClassifier(random_state=0).fit(X, y).save(tmp_path / "iris.polytrain")
    np.save(tmp_path / "X.npy", X)
    assert len(run(capsys, "predict", tmp_path / "iris.polytrain", tmp_path / "X.npy").split()) == 151
    np.savez(tmp_path / "Xy.npz", X=X, y=y)
    assert main(["evaluate", str(tmp_path / "iris.polytrain"), str(tmp_path / "X.npy")]) == 2
    assert "Name it with --target" in capsys.readouterr().err


def test_models_of_frames_saved_in_python(people, tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(people, na_values="?").astype({"grade": "category"})
    columns = frame[["age", "job", "grade"]]
    model = polytrain.TensorTrainClassifier(random_state=0).fit(columns, frame["rich"])
    model.save(tmp_path / "frame.polytrain")
    out = run(capsys, "predict", tmp_path / "frame.polytrain", people, "--probabilities")
    rows = list(csv.DictReader(io.StringIO(out)))
    found = [float(row["probability yes"]) for row in rows]
    np.testing.assert_allclose(found, model.predict_proba(columns)[:, 1], rtol=0, atol=1e-5)
    path = tmp_path / "frame.polytrain"
    assert "grade: 8 categories: 1, 2, 3, 4, 5, 6, 7, 8\n" in run(capsys, "info", path)
    figures = json.loads(run(capsys, "evaluate", path, people, "--target", "rich", "--json"))
    assert figures["accuracy"] == pytest.approx(model.score(columns, frame["rich"]))
    assert "job" in run(capsys, "explain", path)
    run(capsys, "report", path, people, "--target", "rich", "--out", tmp_path / "page.html")
    days = pandas.DataFrame({"day": pandas.to_datetime(["2024-01-01", "2024-02-03", "2024-03-04", "2024-04-06"])})
    polytrain.TensorTrainClassifier(random_state=0).fit(days, [0, 1, 0, 1]).save(tmp_path / "days")
    days.to_csv(tmp_path / "days.csv", index=False)
    assert len(run(capsys, "predict", tmp_path / "days", tmp_path / "days.csv").split()) == 5


def test_streaming_from_standard_input(model, people):
    command = [sys.executable, "-m", "polytrain", "predict", str(model), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(people.read_bytes(), timeout=60)
    assert process.returncode == 0, err
    assert len(out.split()) == 121


@pytest.mark.slow
def test_large_tables_take_little_memory(model, tmp_path, capsys):
    """Twelve blocks take no more memory than three."""
    tracemalloc = pytest.importorskip("tracemalloc")
    peaks = []
    for n_rows in (25_000, 100_000):
        path = tmp_path / f"{n_rows}.csv"
        path.write_text("age,job,grade,more\n" + f"31,cook,2,{'-' * 100}\n" * n_rows)
        tracemalloc.start()
        run(capsys, "predict", model, path, "--out", tmp_path / "out.csv")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (tmp_path / "out.csv").read_text().count("\n") == n_rows + 1
    assert peaks[1] < 1.2 * peaks[0]


def test_fit_is_repeatable(people, tmp_path, capsys):
    argv = ["fit", people, "--target", "rich", "--drop", "id", "--folds", "0", "--quiet"]
    predictions = []
    for name in ("one", "two"):
        run(capsys, *argv, "--out", tmp_path / name)
        predictions.append(run(capsys, "predict", tmp_path / name, people))
    assert predictions[0] == predictions[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh", "powershell"])
def test_shtab_completes_all_commands_and_options(shell):
    script = pytest.importorskip("shtab").complete(make_parser(), shell)
    for word in ("fit", "reproduce", "keep", "probabilities", "onnx"):
        assert word in script
    if shell in ("bash", "zsh", "fish") and shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["polytrain", "re"], {"report", "reproduce"}),
        (["polytrain", "fit", "--ta"], {"--target", "--task"}),
        (["polytrain", "fit", "a.csv", "--task", "c"], {"classification"}),
        (["polytrain", "export", "m", "--to", ""], {"onnx", "c"}),
        (["polytrain", "info", "mod"], {"model"}),
    ],
)
def test_bash_completes(words, expected, tmp_path):
    (tmp_path / "model").touch()
    script = pytest.importorskip("shtab").complete(make_parser(), "bash")
    quoted = " ".join(f"'{word}'" for word in words)
    (name,) = re.findall(r"complete .*-F (\w+) polytrain", script)
    script += f'\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; {name}; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "report", "export", "info"])
def test_help_has_examples_and_exit_codes(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    text = run(capsys, command, "--help")
    assert f"\n  polytrain {command} " in text
    assert "exit codes: 0 done, 2" in text
    prose = text.split("examples:")[0]
    assert max(map(len, prose.splitlines())) <= 80


def test_functions_that_suit_the_columns(tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 2))
    rows = np.column_stack([X, np.where(X[:, 0] > 4, X[:, 1], 3.0)])
    np.savetxt(tmp_path / "steps.csv", rows, delimiter=",", header="a,b,y", comments="")
    choice = ["--basis", "spline", "--bandwidth", "2", "--rank", "3", "--alpha", "1e-4", "--folds", "0", "--quiet"]
    fitted = run(capsys, "fit", tmp_path / "steps.csv", "--target", "y", *choice, "--out", tmp_path / "m")
    assert "functions" in fitted
    assert "degree" not in fitted
    assert f"functions{'':13}17" in run(capsys, "info", tmp_path / "m")
    assert json.loads(run(capsys, "evaluate", tmp_path / "m", tmp_path / "steps.csv", "--json"))["r2"] > 0.97
    assert "f2(a)" in run(capsys, "explain", tmp_path / "m", tmp_path / "steps.csv")
    page = tmp_path / "page.html"
    run(capsys, "report", tmp_path / "m", tmp_path / "steps.csv", "--out", page)
    assert "Coefficients of the polynomial" not in page.read_text()
    for kind in ("onnx", "c"):
        run(capsys, "export", tmp_path / "m", "--to", kind, "--out", tmp_path / f"model.{kind}")
    assert main(["fit", str(tmp_path / "steps.csv"), "--target", "y", "--bandwidth", "-1", "--out", "x"]) == 2
    assert "bandwidth must be 'auto', None or a number between 0 and 1e+06, got -1.0." in capsys.readouterr().err
