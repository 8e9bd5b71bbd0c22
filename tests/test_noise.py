"""Noise, and how far leverages are trusted."""

import numpy as np
import pytest

from polytrain.uncertainty import fit_noise


def _errors(noise, stretch, n_rows=4000):
    rng = np.random.default_rng(0)
    leverages = rng.exponential(2.0, n_rows)
    return np.sqrt(noise * (1 + stretch * leverages)) * rng.normal(size=n_rows), leverages, np.ones(n_rows)


@pytest.mark.parametrize("stretch", [1 / 16, 1.0, 16.0])
@pytest.mark.parametrize("noise", [1e-12, 3.0])
def test_what_made_the_errors_is_found(noise, stretch):
    found = fit_noise(*_errors(noise, stretch))
    assert found[1] == stretch
    assert found[0] == pytest.approx(noise, rel=0.1)


def test_few_rows_do_not_change_the_trust():
    errors, leverages, weights = _errors(1.0, 1 / 4, 12)
    assert fit_noise(errors, leverages, weights)[1] == 1.0


def test_without_errors_there_is_no_noise():
    assert fit_noise(np.zeros(5), np.ones(5), np.ones(5)) == (0.0, 1.0)


def test_sizes_and_weights_have_no_unit():
    errors, leverages, weights = _errors(1.0, 1.0)
    plain = fit_noise(errors, leverages, weights)
    for unit in (1e-150, 1e140):
        assert fit_noise(unit * errors, leverages, 7 * weights) == pytest.approx((plain[0] * unit**2, plain[1]))
