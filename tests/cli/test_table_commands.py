"""fit, predict, evaluate, explain, info, export, completion on small tables."""

import csv
import io
import json
import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris

import polytrain
from polytrain.cli import main
from polytrain.tables import load_table_model

FAST = ["--rank", "2", "--alpha", "1e-3", "--max-sweeps", "1", "--quiet"]


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
    run(
        capsys,
        "fit",
        people,
        "--target",
        "rich",
        "--drop",
        "id",
        "--loss",
        "logistic",
        "--folds",
        "0",
        "--out",
        path,
        *FAST,
    )
    return path


def test_fit_reports_what_it_did(people, tmp_path, capsys):
    out = run(
        capsys, "fit", people, "--target", "rich", "--drop", "id", "--out", tmp_path / "m", "--json",
        "--holdout", "0.25", "--rank", "2", "3", "--alpha", "1e-2", "1e-3", "--max-sweeps", "1", "--quiet",
    )  # fmt: skip
    facts = json.loads(out)
    assert facts["task"] == "classification"
    assert (facts["rows"], facts["holdout_rows"], facts["cv_rows"], facts["cv_settings"]) == (90, 30, 90, 5)
    assert 0 <= facts["holdout_error"] < 0.3
    assert 0 <= facts["cv_error"] < 0.3
    assert facts["rank"] in (2, 3)
    assert facts["alpha"] in (1e-2, 1e-3)
    model = load_table_model(tmp_path / "m")
    assert model.training["cv_error"] == facts["cv_error"]
    # Features of two values need no powers.
    names = model.preparation.feature_names
    assert names == ["age", "age is missing", "job=clerk", "job=cook", "job=smith", "job is missing", "grade"]
    assert model.estimator.plan_.dims == (3, 2, 2, 2, 2, 2, 3)


def test_fit_talks_on_stderr_only(people, tmp_path, capsys):
    argv = ["fit", str(people), "--target", "rich", "--drop", "id", "--out", str(tmp_path / "m"), "--folds", "2"]
    assert main([*argv, *FAST[:-1]]) == 0
    out, err = capsys.readouterr()
    assert "120 rows, 3 columns (with header) -> 7 features" in err
    assert "1 of 2: loss squared, rank 2, alpha 0.001: cross-validated error" in err
    assert "error" in out
    assert str(tmp_path / "m") in out


def test_predict_equals_the_estimator(model, people, tmp_path, capsys):
    loaded = load_table_model(model)
    with loaded.open(people) as table:
        X = np.concatenate([block.X for block in loaded.blocks(table)])
    out = run(capsys, "predict", model, people, "--probabilities", "--keep", "id", "0")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert list(rows[0]) == ["id", "prediction", "probability no", "probability yes"]
    assert [row["prediction"] for row in rows] == loaded.estimator.predict(X).tolist()
    assert [float(row["probability yes"]) for row in rows] == loaded.estimator.predict_proba(X)[:, 1].tolist()
    assert rows[7]["id"] == "p7"
    run(capsys, "predict", model, people, "--out", tmp_path / "out.csv")
    assert (tmp_path / "out.csv").read_text().splitlines() == ["prediction", *(row["prediction"] for row in rows)]


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
    assert f"error             {100 * figures['error']:.2f} %" in text
    assert "confusion matrix" in text


def test_labels_with_a_dot(model, people, capsys):
    figures = json.loads(run(capsys, "evaluate", model, people, "--json"))
    people.write_text(people.read_text().replace(",yes\n", ",yes.\n").replace(",no\n", ",no.\n"))
    assert main(["evaluate", str(model), str(people), "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out) == figures
    assert err == "note: 120 labels end with a dot that the model's labels do not have; they are taken without it\n"


def test_explain(model, people, capsys):
    found = json.loads(run(capsys, "explain", model, people, "--json", "--terms", "4"))
    assert sum(found["importances"].values()) == pytest.approx(1)
    assert next(iter(found["importances"])) == "age"
    assert found["terms"][0]["term"] == "age"
    assert found["terms"][0]["effect"] > 0
    assert (len(found["terms"]), found["proven"], found["terms_of"]) == (4, True, "yes")
    text = run(capsys, "explain", model, people, "--units", "scaled")
    assert "importances of the columns\n  age " in text
    assert "largest coefficients, scaled features" in text


def test_info(model, capsys):
    facts = json.loads(run(capsys, "info", model, "--json"))
    assert facts["classes"] == ["no", "yes"]
    assert facts["bytes"] == model.stat().st_size
    assert facts["n_features"] == len(facts["features"]) == 7
    assert facts["columns"][1]["categories"] == ["clerk", "cook", "smith"]
    text = run(capsys, "info", model)
    assert "job: 3 categories, and missing" in text
    assert "age: number, missing -> " in text


def test_export_c(model, tmp_path, capsys):
    compiler = shutil.which("cc") or shutil.which("gcc")
    run(capsys, "export", model, "--to", "c", "--name", "rich", "--out", tmp_path / "rich.c")
    source = (tmp_path / "rich.c").read_text()
    assert "x[2]  job=clerk: 1 or 0" in source
    assert "int rich_predict(const double *x)" in source
    if compiler:
        command = [compiler, "-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-c", "rich.c", "-o", "rich.o"]
        subprocess.run(command, cwd=tmp_path, check=True)


def test_names_cannot_leave_the_comment(tmp_path, capsys):
    (tmp_path / "a.csv").write_text('"*/ int x; /*",y\n1,2.5\n2,3.5\n4,1.5\n')
    run(capsys, "fit", tmp_path / "a.csv", "--target", "y", "--folds", "0", "--out", tmp_path / "m", *FAST)
    run(capsys, "export", tmp_path / "m", "--to", "c", "--out", tmp_path / "a.c")
    head = (tmp_path / "a.c").read_text().split("x[0]")[1].split("\n")[0]
    assert "*/" not in head
    assert "/*" not in head


def test_export_onnx(model, people, tmp_path, capsys):
    runtime = pytest.importorskip("onnxruntime")
    run(capsys, "export", model, "--to", "onnx", "--dtype", "float64", "--out", tmp_path / "rich.onnx")
    session = runtime.InferenceSession(tmp_path / "rich.onnx", providers=["CPUExecutionProvider"])
    loaded = load_table_model(model)
    assert (
        json.loads(session.get_modelmeta().custom_metadata_map["polytrain.features"])
        == loaded.preparation.feature_names
    )
    with loaded.open(people) as table:
        X = np.concatenate([block.X for block in loaded.blocks(table)])
    labels, _ = session.run(None, {"X": X})
    assert labels.tolist() == loaded.estimator.predict(X).tolist()


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
        run(
            capsys,
            "fit",
            tmp_path / name,
            "--target",
            "-1",
            "--loss",
            "squared",
            "--folds",
            "0",
            "--out",
            tmp_path / "m",
            *FAST,
        )
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
    # Without categories, explain needs no table.
    assert "X8" in run(capsys, "explain", tmp_path / "m")


def test_models_saved_in_python(tmp_path, capsys):
    X, y = load_iris(return_X_y=True)
    polytrain.TensorTrainClassifier(rank=2, max_sweeps=1, random_state=0).fit(X, y).save(tmp_path / "iris.polytrain")
    np.save(tmp_path / "X.npy", X)
    assert len(run(capsys, "predict", tmp_path / "iris.polytrain", tmp_path / "X.npy").split()) == 151
    np.savez(tmp_path / "Xy.npz", X=X, y=y)
    assert main(["evaluate", str(tmp_path / "iris.polytrain"), str(tmp_path / "X.npy")]) == 2
    assert "Name it with --target" in capsys.readouterr().err


def test_streaming_from_standard_input(model, people):
    command = [sys.executable, "-m", "polytrain", "predict", str(model), "-"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        out, err = process.communicate(people.read_bytes(), timeout=60)
    assert process.returncode == 0, err
    assert len(out.split()) == 121


def test_large_tables_take_little_memory(model, tmp_path, capsys):
    """Twelve blocks take no more memory than three."""
    tracemalloc = pytest.importorskip("tracemalloc")
    peaks = []
    for n_rows in (25_000, 100_000):
        path = tmp_path / f"{n_rows}.csv"
        path.write_text("age,job,grade\n" + "31,cook,2\n" * n_rows)
        tracemalloc.start()
        run(capsys, "predict", model, path, "--out", tmp_path / "out.csv")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (tmp_path / "out.csv").read_text().count("\n") == n_rows + 1
    assert peaks[1] < 1.2 * peaks[0]


def test_fit_is_repeatable(people, tmp_path, capsys):
    argv = ["fit", people, "--target", "rich", "--drop", "id", "--loss", "squared", "--folds", "0", *FAST]
    predictions = []
    for name in ("one", "two"):
        run(capsys, *argv, "--out", tmp_path / name)
        predictions.append(run(capsys, "predict", tmp_path / name, people))
    assert predictions[0] == predictions[1]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_all_commands_and_options(shell, capsys):
    script = run(capsys, "completion", shell)
    for word in ("fit", "reproduce", "completion", "new-categories", "probabilities", "onnx"):
        assert word in script
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["polytrain", "re"], {"report", "reproduce"}),
        (["polytrain", "fit", "--ta"], {"--target", "--task"}),
        (["polytrain", "fit", "a.csv", "--task", "c"], {"classification"}),
        (["polytrain", "export", "m", "--to", ""], {"onnx", "c"}),
        (["polytrain", "completion", "f"], {"fish"}),
    ],
)
def test_bash_completes(words, expected, capsys, tmp_path):
    script = run(capsys, "completion", "bash")
    quoted = " ".join(f"'{word}'" for word in words)
    script += f'\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _polytrain; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert set(done.stdout.split()) == expected


@pytest.mark.parametrize("command", ["fit", "predict", "evaluate", "explain", "report", "export", "info", "completion"])
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
    assert "functions     17" in run(capsys, "info", tmp_path / "m")
    assert json.loads(run(capsys, "evaluate", tmp_path / "m", tmp_path / "steps.csv", "--json"))["r2"] > 0.97
    assert "f2(a)" in run(capsys, "explain", tmp_path / "m", tmp_path / "steps.csv")
    page = tmp_path / "page.html"
    run(capsys, "report", tmp_path / "m", tmp_path / "steps.csv", "--out", page)
    assert "Coefficients of the polynomial" not in page.read_text()
    for kind in ("onnx", "c"):
        run(capsys, "export", tmp_path / "m", "--to", kind, "--out", tmp_path / f"model.{kind}")
    assert main(["fit", str(tmp_path / "steps.csv"), "--target", "y", "--bandwidth", "-1", "--out", "x"]) == 2
    assert "--bandwidth must be a positive number, got -1." in capsys.readouterr().err
