"""Every awkward file goes through the commands: understood aloud, or refused with a remedy that works as it is told."""

import re
import shlex

import pytest

from polytrain.cli import main
from tables.awkward_files import AWKWARD_FILES, NAMES

FIT = ["--folds", "0", "--rank", "2", "--alpha", "1e-2", "--max-sweeps", "1"]


def flags(options):
    """Options as they are written on the command line."""
    words = []
    for name, value in (
        ("--header", options.header),
        ("--delimiter", options.delimiter),
        ("--encoding", options.encoding),
    ):
        if value not in (None, "auto"):
            words += [name, value]
    return words


def told(capsys, *argv):
    """Run a command that works; return what it says."""
    code = main([str(word) for word in argv])
    err = capsys.readouterr().err
    assert code == 0, err
    return err


@pytest.mark.parametrize("case", AWKWARD_FILES, ids=lambda case: case.name)
def test_awkward_files_are_fitted_and_predicted(case, tmp_path, capsys):
    if case.needs:
        pytest.importorskip(case.needs)
    path, options, model = case.write(tmp_path), case.options, tmp_path / "m.polytrain"
    goal = "-1" if case.names is None else "target"
    if case.refusal is not None:
        assert main(["fit", str(path), "--target", goal, "--out", str(model), *FIT, *flags(options)]) == 2
        err = capsys.readouterr().err
        assert re.search(case.refusal, err.replace("--", "")) or "--" in err
        assert not model.exists()
        path, options = case.write_remedy(tmp_path), case.remedy.options
        for word in flags(options)[::2]:
            assert word in err  # the remedy is spelled as a flag
    err = told(capsys, "fit", path, "--target", goal, "--out", model, *FIT, *flags(options))
    notes = " ".join(line.removeprefix("note: ") for line in err.splitlines() if line.startswith("note: "))
    if case.refusal is None:
        assert all(word in notes for word in case.notes)
        for name, words in case.kinds.items():
            if name in NAMES and words not in ("text", "numbers"):
                assert f"column {name!r}: {words}" in notes
    told(capsys, "predict", model, path, "--out", tmp_path / "out.csv", *flags(options))
    predictions = (tmp_path / "out.csv").read_text().splitlines()
    assert len(predictions) == case.n_rows + 1
    told(capsys, "evaluate", model, path, *flags(options))


def table(tmp_path, header, *lines):
    path = tmp_path / "a.csv"
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def test_a_frame_of_pandas_with_its_index(tmp_path, capsys):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [0.5 * (k % 9) for k in range(40)], "y": ["ab"[k % 9 > 4] for k in range(40)]})
    frame.to_csv(tmp_path / "x.csv")
    model = tmp_path / "m"
    err = told(capsys, "fit", tmp_path / "x.csv", "--target", "y", "--out", model, *FIT)
    remedy = "column 'Unnamed: 0' left out: its name is that of an index; keep it with --keep 'Unnamed: 0'"
    assert remedy in err
    assert "1 columns" in err
    told(capsys, "predict", model, tmp_path / "x.csv")
    err = told(capsys, "fit", tmp_path / "x.csv", "--target", "y", "--out", model, "--keep", "Unnamed: 0", *FIT)
    assert "2 columns" in err


def test_identifiers_are_left_out_and_can_be_kept(tmp_path, capsys):
    lines = [f"{k + 1},p{k:04d},{k % 9},{'ab'[k % 9 > 4]}" for k in range(50)]
    path = table(tmp_path, "nr,code,x,y", *lines)
    argv = ["fit", path, "--target", "y", "--out", tmp_path / "m", *FIT]
    err = told(capsys, *argv)
    remedies = re.findall(r"keep it with (--keep \S+)", err)
    assert remedies == ["--keep nr", "--keep code"]
    # Neither is asked for by predict.
    short = tmp_path / "short.csv"
    short.write_text("x\n3\n")
    told(capsys, "predict", tmp_path / "m", short)
    assert "3 columns" in told(capsys, *argv, "--keep", *(shlex.split(remedy)[1] for remedy in remedies))


def test_a_wrong_file_is_told_by_what_is_missing(tmp_path, capsys):
    path = table(tmp_path, "x,z,y", *(f"{k % 9},{k % 4},{'ab'[k % 2]}" for k in range(40)))
    told(capsys, "fit", path, "--target", "y", "--out", tmp_path / "m", *FIT)
    (tmp_path / "wrong.csv").write_text(",a,a,b b\n0,1,2,3\n1,2,3,4\n")
    assert main(["predict", str(tmp_path / "m"), str(tmp_path / "wrong.csv")]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert "lacks the columns x, z; it has Unnamed: 0, a, a.1, b b" in last


@pytest.mark.parametrize(
    ("loss", "more"),
    [
        ("poisson", []),
        ("gamma", []),
        ("quantile", ["--quantile", "0.9"]),
        ("huber", ["--epsilon", "2"]),
        ("absolute", []),
    ],
)
def test_losses_of_numbers(tmp_path, capsys, loss, more):
    path = table(tmp_path, "x,y", *(f"{k % 9 / 4},{(k % 9) ** 2 + k % 3 + 1}" for k in range(90)))
    argv = ["fit", path, "--target", "y", "--task", "regression", "--loss", loss, *more, "--out", tmp_path / "m"]
    assert main([str(word) for word in [*argv, "--metric", "deviance", "--json", "--quiet"]]) == 0
    assert '"deviance": ' in capsys.readouterr().out
    assert main(["evaluate", str(tmp_path / "m"), str(path)]) == 0
    assert "\ndeviance " in capsys.readouterr().out


def test_options_of_another_task(tmp_path, capsys):
    path = table(tmp_path, "x,y", *(f"{k % 9},{'ab'[k % 2]}" for k in range(30)))
    argv = ["fit", str(path), "--target", "y", "--out", str(tmp_path / "m")]
    for more, message in (
        (["--loss", "gamma"], "the target 'y' holds text such as 'a'; regression needs numbers"),
        (["--metric", "mae"], "--metric mae does not apply to classification. Name one of error"),
        (["--quantile", "0.5"], "--quantile does not apply to classification"),
    ):
        assert main([*argv, *more]) == 2
        assert message in capsys.readouterr().err


def test_intervals_and_probabilities(tmp_path, capsys):
    path = table(tmp_path, "x,y", *(f"{k % 11 / 4},{k % 11 + (k * 7 % 5) / 9}" for k in range(90)))
    told(capsys, "fit", path, "--target", "y", "--out", tmp_path / "m", "--folds", "0")
    assert main(["predict", str(tmp_path / "m"), str(path), "--interval", "0.9", "--keep", "y"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head == "y,prediction,low,high"
    inside = [float(low) <= float(y) <= float(high) for y, _, low, high in (line.split(",") for line in lines)]
    assert 0.8 < sum(inside) / len(inside) <= 1.0
    assert main(["predict", str(tmp_path / "m"), str(path), "--interval", "0.9", "--bounds", "0", "none"]) == 0
    bounded = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    for (_, _, low, high), (_, *ends) in zip((line.split(",") for line in lines), bounded, strict=True):
        assert list(map(float, ends)) == [max(float(low), 0.0), float(high)]
    assert min(float(line.split(",")[2]) for line in lines) < 0
    for more, message in (
        (["--interval", "0.9", "--bounds", "3", "1"], "bounds must be None or a pair of numbers"),
        (["--bounds", "0", "none"], "--bounds requires --interval. Add --interval 0.9"),
    ):
        assert main(["predict", str(tmp_path / "m"), str(path), *more]) == 2
        assert message in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "m"), str(path), "--interval", "2"]) == 2
    assert "--interval must be between 0 and 1" in capsys.readouterr().err
    assert main(["predict", str(tmp_path / "m"), str(path), "--probabilities"]) == 2
    capsys.readouterr()
    labels = table(tmp_path, "x,y", *(f"{k % 11},{'abc'[k % 11 // 4]}" for k in range(90)))
    told(capsys, "fit", labels, "--target", "y", "--class-weight", "balanced", "--out", tmp_path / "c", "--folds", "0")
    assert main(["predict", str(tmp_path / "c"), str(labels), "--probabilities"]) == 0
    assert capsys.readouterr().out.startswith("prediction,probability a,probability b,probability c\n")
