import struct

import pytest

from polytrain_paper.experiments import plots
from polytrain_paper.experiments.settings import INITS


def make_rows(sizes, inits=("linear",), paper=True):
    return [
        {
            "loss": loss,
            "init": init,
            "d": d,
            "degree": degree,
            "rank": rank,
            "train_error": 0.001 * d,
            "test_error": 0.002 * rank,
            "paper_train_error": 0.003 if paper else None,
            "paper_test_error": 0.004 if paper else None,
        }
        for d, degree, rank in sizes
        for loss in ("squared", "logistic")
        for init in inits
    ]


def png_size(path):
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", content[16:24])


def test_widest_slice():
    rows = make_rows([(20, 2, 8), (30, 2, 8), (40, 2, 8), (20, 1, 8), (30, 1, 8), (20, 3, 8), (20, 3, 10)])
    shared, members = plots.widest_slice(rows, "d")
    assert shared == {"degree": 2, "rank": 8}
    assert sorted({row["d"] for row in members}) == [20, 30, 40]
    shared, members = plots.widest_slice(rows, "degree")
    assert shared == {"d": 20, "rank": 8}
    assert [row["degree"] for row in members] == [1, 1, 2, 2, 3, 3]
    shared, members = plots.widest_slice(rows, "rank")
    assert shared == {"d": 20, "degree": 3}
    # Among equally wide ones, the smallest models.
    assert plots.widest_slice(make_rows([(40, 1, 8), (20, 1, 8)]), "rank")[0] == {"d": 20, "degree": 1}


@pytest.mark.parametrize("paper", [True, False])
def test_errors_are_drawn(tmp_path, paper):
    pytest.importorskip("matplotlib")
    path = tmp_path / "errors.png"
    plots.plot_errors(path, make_rows([(20, 1, 8), (30, 1, 8), (20, 2, 8)], paper=paper), "title")
    assert min(png_size(path)) > 600


def test_convergence_and_ablation_are_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    shape = {"d": 3, "degree": 1, "rank": 2, "alpha": 0.1, "objectives": [1.0, 0.5, 0.4, 0.3, 0.2]}
    curves = [{"loss": loss, "init": init, **shape} for loss in ("squared", "logistic") for init in INITS]
    plots.plot_convergence(tmp_path / "two.png", curves, "title")
    plots.plot_convergence(tmp_path / "one.png", curves[:2], "title")
    assert png_size(tmp_path / "two.png")[0] > png_size(tmp_path / "one.png")[0] > 600
    plots.plot_ablation(tmp_path / "ablation.png", make_rows([(20, 1, 8), (20, 2, 8)], INITS), "title")
    assert min(png_size(tmp_path / "ablation.png")) > 400
