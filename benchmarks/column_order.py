"""Does the order of the columns matter? Default models with columns as they come, by relevance and by interactions.

    POLYTRAIN_DATA=FOLDER python -m benchmarks.column_order
    python -m benchmarks.column_order --only kin8nm hpc --folds 1

The first fit says how relevant the columns are and how much pairs of them act together (Sobol indices). Then the
columns are put in order, and the default model is fitted anew. Printed are the errors in units of the first one:
1 - AUC for two classes, log loss for more, root mean squared error for numbers. A control shuffles the columns.
"""

from __future__ import annotations

import argparse
from itertools import islice

import numpy as np
import pandas as pd

from benchmarks.table_models import make_model
from benchmarks.tables import markdown, measure
from benchmarks.tabular import mixed_tables
from polytrain.explain import sobol_indices

ORDERS = ("shuffled", "by relevance", "strongest in the middle", "by interactions")


def orders(model: object, n_columns: int) -> dict[str, np.ndarray]:
    """Return the columns in each order, as the fitted model suggests them."""
    indices = sobol_indices(model)
    shares = indices.variance / indices.variance.sum()
    total, pairs = shares @ indices.total, np.tensordot(shares, indices.second, 1)
    relevant = np.argsort(-total, kind="stable")
    path, left = [int(relevant[0])], set(range(n_columns)) - {int(relevant[0])}
    while left:  # next to each column the one that acts with it most
        path.append(max(left, key=lambda k: (pairs[path[-1], k], total[k])))
        left.remove(path[-1])
    shuffled = np.random.default_rng(0).permutation(n_columns)
    middle = np.concatenate([relevant[::2][::-1], relevant[1::2]])
    return dict(zip(ORDERS, (shuffled, relevant, middle, np.array(path)), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", metavar="TABLE", help="tables; default all of FOLDER/tables")
    parser.add_argument("--folds", type=int, default=3, help="how many of the three folds (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="n_jobs (default %(default)s)")
    options = parser.parse_args()
    lines, ratios = [], []
    for table in mixed_tables():
        if options.only and table.name not in options.only:
            continue
        errors = []
        for X, y, X_test, y_test in islice(table.folds(), options.folds):
            model = make_model("polytrain", table.kind, X, options.jobs)
            row = [measure(table.kind, model, (X, y, X_test, y_test))["error"]]
            for columns in orders(model, X.shape[1]).values():
                fold = X.iloc[:, columns], y, X_test.iloc[:, columns], y_test
                row.append(measure(table.kind, make_model("polytrain", table.kind, X, options.jobs), fold)["error"])
            errors.append(row)
        first, *others = np.mean(errors, axis=0)
        ratios.append(np.array(others) / first)
        lines.append([table.name, f"{first:.4g}", *(f"{ratio:.3f}" for ratio in ratios[-1])])
        print(lines[-1], flush=True)
    means = np.exp(np.log(pd.DataFrame(ratios)).mean())
    lines.append(["geometric mean", "", *(f"{mean:.3f}" for mean in means)])
    print(markdown(["table", "error as it comes", *ORDERS], lines))


if __name__ == "__main__":
    main()
