"""Draw docs/images/report.png: the top of a report about Adult, on a wide screen and on a dark phone.

    POLYTRAIN_DATA=... python scripts/draw_report.py [--pages FOLDER]

Needs Chromium with chromedriver, as the tests of the report do. With --pages, reports about Adult, concrete and wine
are kept in the folder, each with screenshots of the whole page, 1280 and 390 pixels wide, light and dark.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
from PIL import Image
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

import polytrain
from polytrain import TensorTrainClassifier, TensorTrainRegressor

REPOSITORY = Path(__file__).resolve().parents[1]
PICTURE = REPOSITORY / "docs" / "images" / "report.png"
NAMES = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex capital-gain "
    "capital-loss hours-per-week native-country income"
)
HEIGHT = 2150


def adult(folder: Path) -> tuple[Any, ...]:
    """Classes, with categories and gaps; the published split."""
    read = {"header": None, "names": NAMES.split(), "skipinitialspace": True, "na_values": "?"}
    train, test = (pd.read_csv(folder / f"adult-{part}.csv", **read) for part in ("train", "test"))
    labels = test.pop("income").str.rstrip(".")
    return TensorTrainClassifier(random_state=0), train, test, train.pop("income"), labels


def concrete(folder: Path) -> tuple[Any, ...]:
    """A number."""
    rows = pd.read_csv(folder / "concrete.csv")
    y = rows.pop(rows.columns[-1])
    return TensorTrainRegressor(random_state=0), *train_test_split(rows, y, random_state=0)


def wine(folder: Path) -> tuple[Any, ...]:
    """Three classes."""
    X, y = load_wine(return_X_y=True, as_frame=True)
    cultivar = y.map({0: "Barolo", 1: "Grignolino", 2: "Barbera"}).rename("cultivar")
    return TensorTrainClassifier(random_state=0), *train_test_split(X, cultivar, test_size=0.4, random_state=0)


def main() -> None:
    """Fit, report and look."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pages", type=Path, help="folder for three reports and their screenshots")
    pages = parser.parse_args().pages
    sys.path.insert(0, str(REPOSITORY / "tests" / "reporting"))
    from browser import open_browser

    data = Path(os.environ["POLYTRAIN_DATA"]) / "tabular"
    with tempfile.TemporaryDirectory() as place, open_browser() as browser:
        folder = Path(place) if pages is None else pages
        folder.mkdir(parents=True, exist_ok=True)
        for make in (adult,) if pages is None else (adult, concrete, wine):
            model, X_train, X, y_train, y = make(data)
            page = folder / f"{make.__name__}.html"
            title = f"{make.__name__.capitalize()}: {y.name}"
            polytrain.report(model.fit(X_train, y_train), X, y, page, X_train=X_train, y_train=y_train, title=title)
            for width in (1280, 390):
                for dark in (False, True):
                    browser.show(page, width, dark=dark)
                    browser.screenshot(folder / f"{make.__name__}-{width}-{'dark' if dark else 'light'}.png")
        wide, phone = (Image.open(folder / f"adult-{look}.png").convert("RGB") for look in ("1280-light", "390-dark"))
        both = Image.new("RGB", (1280 + 20 + 390, HEIGHT), "#888888")
        both.paste(wide.crop((0, 0, 1280, HEIGHT)), (0, 0))
        both.paste(phone.crop((0, 0, 390, HEIGHT)), (1300, 0))
        small = both.resize((both.width * 3 // 5, both.height * 3 // 5), Image.Resampling.LANCZOS)
        small.quantize(256, Image.Quantize.MAXCOVERAGE).save(PICTURE, optimize=True)


if __name__ == "__main__":
    main()
