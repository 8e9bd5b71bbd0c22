"""How far leverages are trusted."""

import numpy as np
import pytest

from polytrain.uncertainty import fit_stretch


def _errors(noise, stretch, n_rows=4000):
    rng = np.random.default_rng(0)
    leverages = rng.exponential(2.0, n_rows)
    return np.sqrt(noise * (1 + stretch * leverages)) * rng.normal(size=n_rows), leverages, np.ones(n_rows)


@pytest.mark.parametrize("stretch", [1 / 16, 1.0, 16.0])
@pytest.mark.parametrize("noise", [1e-12, 3.0])
def test_what_made_the_errors_is_found(noise, stretch):
    assert fit_stretch(*_errors(noise, stretch)) == stretch


def test_few_rows_do_not_change_the_trust():
    errors, leverages, weights = _errors(1.0, 1 / 4, 12)
    assert fit_stretch(errors, leverages, weights) == 1.0


def test_without_errors_it_is_the_simplest():
    assert fit_stretch(np.zeros(5), np.ones(5), np.ones(5)) == 1.0


def test_sizes_and_weights_have_no_unit():
    errors, leverages, weights = _errors(1.0, 1.0)
    for unit in (1e-150, 1e140):
        assert fit_stretch(unit * errors, leverages, 7 * weights) == fit_stretch(errors, leverages, weights)
