"""Model files that say something impossible about uncertainty are refused."""

import numpy as np
import pytest
from hostile import ModelParts

import polytrain

UNCERTAIN = {
    "guaranteed": lambda a: a.astype(np.int64),
    "numbers": lambda a: -a,
    "counts": lambda a: a + 1,
    "errors": lambda a: a[::-1].copy(),
    "heights": lambda a: a[::-1].copy(),
    "ranks": lambda a: a + 1,
    "moments": lambda a: a[:-1],
    "curves": lambda a: a[::-1].copy(),
    "effects": lambda a: a / 0,
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_damaged_uncertainty_is_refused(tmp_path, name):
    rng, path = np.random.default_rng(0), tmp_path / "model"
    X = rng.uniform(size=(300, 2))
    y = X[:, 0] * X[:, 1] + X[:, 0] * rng.normal(size=300)  # noise that grows has a scale
    polytrain.TensorTrainRegressor(random_state=0).fit(X, y).save(path)
    parts = ModelParts(path.read_bytes())
    key = f"uncertainty.{name}"
    for change in (UNCERTAIN[name], lambda array: np.full_like(array, 200)[:0]):
        damaged = parts.copy()
        with np.errstate(divide="ignore", invalid="ignore"):
            damaged.arrays[key] = change(damaged.arrays[key])
        path.write_bytes(damaged.assemble())
        with pytest.raises(polytrain.ModelFileError):
            polytrain.load(path)
    del parts.arrays[key]
    path.write_bytes(parts.assemble())
    with pytest.raises(polytrain.ModelFileError, match="missing"):
        polytrain.load(path)
