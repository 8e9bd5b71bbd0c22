"""How format4.polytrain was made, once, by the version that wrote that format first.

What it says must be read for ever, so run it only to see what a new version would write elsewhere:
``python tests/data/write_format4.py PATH``.
"""

import sys

import numpy as np
import pandas as pd

from polytrain import TensorTrainClassifier


def table():
    """Rows with a number, categories, text and a date, all with gaps but the number, and three labels."""
    rng = np.random.default_rng(4)
    n_rows = 48
    frame = pd.DataFrame(
        {
            "length": rng.uniform(-1, 1, n_rows).round(3),
            "Farbe": pd.Categorical(rng.choice(["rot", "grün", "blau"], n_rows)),
            "town": rng.choice(["Bern", "Graz"], n_rows),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 90, n_rows), unit="D"),
        }
    )
    score = frame["length"].to_numpy() + (frame["Farbe"] == "rot") - 0.5 * (frame["town"] == "Bern")
    for name in frame.columns[1:]:
        frame.loc[rng.random(n_rows) < 0.1, name] = None
    return frame, np.array(["no", "perhaps", "yes"])[np.digitize(score, [-0.3, 0.5])]


if __name__ == "__main__":
    X, y = table()
    TensorTrainClassifier(rank=2, max_sweeps=1, random_state=0).fit(X, y).save(sys.argv[1])
