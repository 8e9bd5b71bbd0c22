"""The pictures of the landing page show the figures of the page that they are from."""

from pathlib import Path

import pytest

from polytrain.plotting.style import COLOURS, DARK_COLOURS, DARK_PAPER, PAPER
from scripts_as_modules import load_script

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def draw_landing():
    return load_script("draw_landing")


@pytest.mark.parametrize(
    ("name", "colours", "paper"), [("light", COLOURS, PAPER), ("dark", DARK_COLOURS, DARK_PAPER)], ids=["light", "dark"]
)
def test_pictures_are_up_to_date(draw_landing, name, colours, paper):
    means = draw_landing.read_means((ROOT / "docs" / "when-it-wins.md").read_text(encoding="utf-8"))
    picture = (ROOT / "docs" / "images" / f"landing-{name}.svg").read_text(encoding="utf-8")
    assert picture == draw_landing.draw(means, colours, paper), "redraw it with: python scripts/draw_landing.py"


def test_figures_are_read(draw_landing):
    page = "| measure | polytrain | svm |\n|---|---|---|\n| error %, all tables (3) | 1.1 | 1.2 [2] |\n"
    page += "| RMSE, all tables (4) | 1.0 | - |\n"
    assert draw_landing.read_means(page) == {
        "numbers: error / best error": {"polytrain": 1.0},
        "classes: error / best error": {"polytrain": 1.1, "svm": 1.2},
    }
    with pytest.raises(ValueError, match="has no row that begins with"):
        draw_landing.read_means(page.replace("RMSE", "MAE"))
