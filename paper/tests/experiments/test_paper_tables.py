import pytest

from polytrain_paper.experiments.paper_tables import LOSS_NAMES, ModelSize, published, table_sizes


@pytest.mark.parametrize(
    ("dataset", "loss", "size", "train", "test", "seconds"),
    [
        ("usps", "squared", (20, 1, 8), 0.0058, 0.0433, 11.0),
        ("usps", "logistic", (40, 2, 8), 0.0021, 0.0374, 183.9),
        ("usps", "squared", (30, 3, 8), 0.0063, 0.0443, 49.3),
        ("usps", "logistic", (40, 1, 10), 0.0033, 0.0384, 452.4),
        ("mnist", "squared", (35, 1, 8), 0.0019, 0.0081, 139.5),
        ("mnist", "logistic", (35, 1, 8), 0.0003, 0.0082, 345.5),
        ("mnist", "squared", (40, 4, 10), 0.0024, 0.0102, 788.3),
        ("mnist", "logistic", (40, 4, 10), 0.0014, 0.0091, 2642.0),
    ],
)
def test_figures_are_those_of_the_paper(dataset, loss, size, train, test, seconds):
    assert published(dataset, loss, ModelSize(*size)) == (train, test, seconds)


@pytest.mark.parametrize(("dataset", "n_rows"), [("usps", 18), ("mnist", 19)])
def test_every_row_has_plausible_figures(dataset, n_rows):
    sizes = table_sizes(dataset)
    assert len(sizes) == len(set(sizes)) == n_rows
    for size in sizes:
        for loss in LOSS_NAMES:
            train, test, seconds = published(dataset, loss, size)
            assert 0 < train < test < 0.05
            assert 10 < seconds < 3000


def test_other_rows_and_data_have_no_figures():
    assert published("usps", "squared", ModelSize(20, 1, 9)) is None
    assert published("digits", "squared", ModelSize(20, 1, 8)) is None
    assert table_sizes("digits") == table_sizes("usps")
