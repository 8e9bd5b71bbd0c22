import pytest

from polytrain_paper.experiments.report import describe_run
from polytrain_paper.experiments.settings import Settings

PART = (
    "the first sweeps of all trains or some saw a part of the 7291 training rows, 2600 or more; all other sweeps that "
    "led to these figures saw all."
)


def make_row(fewest_rows, init="linear"):
    return {"init": init, "n_rows": 7291, "fewest_rows": fewest_rows}


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            [make_row(7291), make_row(7291, "random")],
            "Every sweep that led to these figures saw all 7291 training rows.",
        ),
        ([make_row(2600), make_row(2700)], f"In every fit {PART}"),
        ([make_row(2600), make_row(3000), make_row(7291, "random")], f"In 2 of 3 fits {PART}"),
    ],
)
def test_the_report_says_which_rows_the_sweeps_saw(rows, sentence):
    described = describe_run(Settings.default("usps"), rows)
    assert sentence in described
    assert any(f"{' and '.join(dict.fromkeys(row['init'] for row in rows))} start" in line for line in described)
