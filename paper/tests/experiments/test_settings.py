from dataclasses import fields, replace

import pytest

from polytrain_paper.experiments.paper_tables import ModelSize
from polytrain_paper.experiments.settings import RowSpec, Settings, ablation_rows, parse_rows

BOTH = ("squared", "logistic")
ROW = RowSpec("squared", ModelSize(30, 2, 10), "linear")


@pytest.mark.parametrize(
    ("dataset", "features", "n_sizes"),
    [("usps", "cnn", 18), ("mnist", "cnn", 19), ("digits", "cnn", 5), ("mnist", "pca", 3), ("usps", "dft", 3)],
)
def test_default_rows(dataset, features, n_sizes):
    rows = parse_rows(None, dataset, features, BOTH, "linear")
    assert len(rows) == len(set(rows)) == 2 * n_sizes
    assert [row.loss for row in rows[:4]] == [*BOTH, *BOTH]


def test_rows_are_read_in_any_order_and_once():
    rows = parse_rows(["rank=8, degree=1,d=20", "quick", "d=20,degree=1,rank=8"], "usps", "cnn", ["squared"], "random")
    assert rows[0] == RowSpec("squared", ModelSize(20, 1, 8), "random")
    assert len(rows) == 5


@pytest.mark.parametrize(
    ("text", "features", "message"),
    [
        ("all", "cnn", "rows must be paper, quick, components or a row such as 'd=20,degree=1,rank=8', got 'all'"),
        ("d=20,degree=1", "cnn", "rows must be"),
        ("d=20,degree=1,rank=8,alpha=1", "cnn", "rows must be"),
        ("d=20,degree=-1,rank=8", "cnn", "rows must be"),
        ("d=21,degree=1,rank=8", "cnn", "d=21: the nets have 20, 25, 30, 35, 40 features"),
        ("d=785,degree=1,rank=8", "pca", "d must be from 2 to 784"),
        ("d=40,degree=0,rank=8", "pca", "degree must be a positive integer, got 0"),
        ("d=40,degree=1,rank=0", "pca", "rank must be a positive integer, got 0"),
    ],
)
def test_wrong_rows_are_named(text, features, message):
    with pytest.raises(ValueError, match=message):
        parse_rows([text], "usps", features, BOTH, "linear")


def test_alpha_is_chosen_once_per_degree_or_for_every_row():
    settings = Settings.default("usps")
    for size in ((40, 2, 10), (25, 2, 8)):
        assert settings.cv_size(ModelSize(*size)) == (20, 2, 8)
    assert settings.cv_size(ModelSize(20, 1, 4)) == (20, 1, 4)
    assert settings.alpha_key("squared", ModelSize(40, 2, 10)) == settings.alpha_key("squared", ModelSize(25, 2, 8))
    by_row = Settings.default("usps", "pca")
    assert by_row.cv_size(ModelSize(40, 2, 16)) == (40, 2, 16)
    assert Settings.default("usps", cv_per="row").cv_size(ROW.size) == ROW.size


CHANGED = {
    "dataset": "mnist",
    "features": "pca",
    "alphas": (0.1,),
    "folds": 5,
    "cv_rows": 100,
    "cv_per": "row",
    "cv_sweeps": 3,
    "max_sweeps": 3,
    "tol": 1e-3,
    "seed": 1,
}


@pytest.mark.parametrize("name", [field.name for field in fields(Settings)])
def test_no_setting_may_change_without_a_new_key(name):
    settings = Settings.default("usps")
    changed = replace(settings, **{name: CHANGED[name]})
    assert changed.row_key(ROW) != settings.row_key(ROW)
    assert changed.convergence_key(ROW) != settings.convergence_key(ROW)
    if name != "max_sweeps":
        assert changed.alpha_key("squared", ROW.size) != settings.alpha_key("squared", ROW.size)


@pytest.mark.parametrize("change", [{"loss": "logistic"}, {"size": ModelSize(30, 2, 8)}, {"init": "random"}])
def test_rows_have_different_keys(change):
    settings = Settings.default("usps")
    assert settings.row_key(ROW._replace(**change)) != settings.row_key(ROW)


def test_a_key_knows_the_code(monkeypatch):
    settings = Settings.default("usps")
    before = settings.alpha_key("squared", ROW.size), settings.row_key(ROW), settings.convergence_key(ROW)
    monkeypatch.setattr("polytrain_paper.experiments.settings.code_digest", lambda: "other")
    after = settings.alpha_key("squared", ROW.size), settings.row_key(ROW), settings.convergence_key(ROW)
    assert all(key != other for key, other in zip(before, after, strict=True))


def test_ablation_pairs_the_starts():
    rows = ablation_rows(BOTH)
    assert len(rows) == len(set(rows))
    for row in rows:
        other = "random" if row.init == "linear" else "linear"
        assert row._replace(init=other) in rows
    assert len({row.size.degree for row in rows}) >= 3
    assert len({row.size.rank for row in rows}) >= 3
