"""Losses on rows drawn from the matching distributions, beside scikit-learn's linear models and boosting.

    python -m benchmarks.losses [--quick]

- quantiles: which part of 5,000 fresh targets lies below the prediction, 4,000 training rows with a noise that differs
  from row to row, several seeds; beside ``HistGradientBoostingRegressor(loss="quantile")``;
- counts with exposures: mean Poisson deviance on fresh rows, for a truth that is linear and for one with an
  interaction; beside ``PoissonRegressor`` and boosting with the same loss (rates, exposures as weights);
- outliers: distance from the truth where one target in ten is wrong by far.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import HuberRegressor, PoissonRegressor
from sklearn.metrics import mean_poisson_deviance

from benchmarks.report import Report, make_parser
from polytrain import TensorTrainRegressor


def quantiles(seeds: range) -> list[dict]:
    """Coverage of quantiles, one line per level and seed."""
    lines = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (9000, 4))
        y = np.sin(3 * X[:, 0]) * X[:, 1] + (0.3 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=9000)
        for level in (0.05, 0.5, 0.9):
            own = TensorTrainRegressor(loss="quantile", quantile=level, random_state=0)
            boosting = HistGradientBoostingRegressor(loss="quantile", quantile=level, random_state=0)
            models: dict[str, Any] = {"polytrain": own, "boosting": boosting}
            line: dict[str, Any] = {"level": level, "seed": seed}
            for name, model in models.items():
                predicted = model.fit(X[:4000], y[:4000]).predict(X[4000:])
                residual = y[4000:] - predicted
                line[f"{name}, covered"] = float(np.mean(residual <= 0))
                line[f"{name}, loss"] = float(np.mean(np.maximum(level * residual, (level - 1) * residual)))
            lines.append(line)
    return lines


def counts(seeds: range) -> list[dict]:
    """Mean Poisson deviance of counts with exposures."""
    lines = []
    for seed in seeds:
        for truth, strength in (("linear", 0.0), ("interaction", 1.2)):
            rng = np.random.default_rng(seed)
            X, exposure = rng.uniform(-1, 1, (7000, 5)), np.exp(rng.normal(size=7000))
            mean = exposure * np.exp(0.5 + 0.8 * X[:, 0] - 0.5 * X[:, 1] + strength * X[:, 2] * X[:, 3])
            y = rng.poisson(mean)
            old, new = slice(0, 2000), slice(2000, None)
            own = TensorTrainRegressor(loss="poisson", random_state=0).fit(X[old], y[old], offset=np.log(exposure[old]))
            rates = y[old] / exposure[old]
            linear = PoissonRegressor(alpha=1e-4).fit(X[old], rates, sample_weight=exposure[old])
            boosting = HistGradientBoostingRegressor(loss="poisson", random_state=0)
            boosting.fit(X[old], rates, sample_weight=exposure[old])
            found = {
                "polytrain": own.predict(X[new], offset=np.log(exposure[new])),
                "PoissonRegressor": linear.predict(X[new]) * exposure[new],
                "boosting": boosting.predict(X[new]) * exposure[new],
                "the truth": mean[new],
            }
            deviances = {name: mean_poisson_deviance(y[new], predicted) for name, predicted in found.items()}
            lines.append({"truth": truth, "seed": seed, **deviances})
    return lines


def outliers(seeds: range) -> list[dict]:
    """Root mean square of the distance from the truth."""
    lines = []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1, 1, (3000, 4))
        truth = np.sin(3 * X[:, 0]) * X[:, 1] + X[:, 2]
        y = truth + 0.3 * rng.normal(size=3000)
        wrong = rng.random(1000) < 0.1
        y[:1000][wrong] += 20 * rng.standard_cauchy(wrong.sum())
        models: dict[str, Any] = {
            name: TensorTrainRegressor(loss=name, random_state=0) for name in ("squared", "huber", "absolute")
        }
        models["HuberRegressor"] = HuberRegressor(max_iter=1000)
        models["boosting, absolute"] = HistGradientBoostingRegressor(loss="absolute_error", random_state=0)
        line: dict[str, Any] = {"seed": seed}
        for name, model in models.items():
            predicted = model.fit(X[:1000], y[:1000]).predict(X[1000:])
            line[name] = float(np.sqrt(np.mean(np.square(predicted - truth[1000:]))))
        lines.append(line)
    return lines


def main(argv: list[str] | None = None) -> None:
    arguments = make_parser(__doc__).parse_args(argv)
    report = Report("losses", arguments.quick)
    seeds = range(1 if arguments.quick else 4)
    found = quantiles(seeds)
    report.table("quantiles", found, markdown=True)
    worst = max(abs(line["polytrain, covered"] - line["level"]) for line in found)
    report.figure("largest distance of coverage from the level", 100 * worst, "points", at_most=2.0)
    gains = np.log([line["polytrain, loss"] / line["boosting, loss"] for line in found])
    report.figure("pinball loss, polytrain / boosting, geometric mean", float(np.exp(gains.mean())), "x")
    found = counts(seeds)
    report.table("counts with exposures, mean Poisson deviance", found, markdown=True)
    for truth in ("linear", "interaction"):
        ratios = [line["polytrain"] / line["PoissonRegressor"] for line in found if line["truth"] == truth]
        report.figure(f"deviance, polytrain / PoissonRegressor, {truth}", float(np.mean(ratios)), "x", at_most=1.0)
    report.table("outliers, distance from the truth", outliers(seeds), markdown=True)
    report.finish()


if __name__ == "__main__":
    main()
