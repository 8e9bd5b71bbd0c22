"""Bases against NumPy's polynomial modules."""

import numpy as np
import pytest
from numpy.polynomial import chebyshev, legendre, polynomial

from polytrain.basis import BASES, get_basis

FAMILIES = {"power": polynomial.polyvander, "chebyshev": chebyshev.chebvander, "legendre": legendre.legvander}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 3, 7])
def test_values_match_numpy(name, n):
    x = np.random.default_rng(0).uniform(-1.5, 1.5, 40)
    values = get_basis(name).values(x, n)
    assert values.shape == (n, 40)
    np.testing.assert_allclose(values, FAMILIES[name](x, n - 1).T, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_first_two_functions_are_one_and_x(name):
    x = np.linspace(-1, 1, 5)
    values = get_basis(name).values(x, 3)
    np.testing.assert_array_equal(values[0], 1)
    np.testing.assert_array_equal(values[1], x)


@pytest.mark.parametrize("name", FAMILIES)
def test_values_write_where_they_are_told_and_keep_float32(name):
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    out = np.empty((4, 6), dtype=np.float32)
    assert get_basis(name).values(x, 4, out=out) is out
    values = get_basis(name).values(x, 4)
    assert values.dtype == np.float32
    np.testing.assert_array_equal(values, out)
    assert get_basis(name).values([1, 2], 2).dtype == np.float64


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_product_table_is_the_product_of_two_functions(name, n):
    basis = get_basis(name)
    x = np.linspace(-1, 1, 17)
    table = basis.product_table(n)
    assert table.shape == (n, n, 2 * n - 1)
    values, more = basis.values(x, n), basis.values(x, 2 * n - 1)
    np.testing.assert_allclose(np.tensordot(table, more, axes=1), values[:, None] * values[None], atol=1e-13)
    np.testing.assert_array_equal(table, table.transpose(1, 0, 2))


@pytest.mark.parametrize("name", FAMILIES)
def test_to_power_matrix_rewrites_functions_as_powers(name):
    basis = get_basis(name)
    x = np.linspace(-1, 1, 9)
    powers = get_basis("power").values(x, 5)
    np.testing.assert_allclose(basis.to_power_matrix(5) @ powers, basis.values(x, 5), atol=1e-14)


@pytest.mark.parametrize("name", FAMILIES)
def test_shared_tables_cannot_be_overwritten(name):
    for table in (get_basis(name).product_table(3), get_basis(name).to_power_matrix(3)):
        with pytest.raises(ValueError, match="read-only"):
            table[0, 0] = 5.0


def test_names():
    assert set(BASES) == set(FAMILIES)
    for name in BASES:
        assert get_basis(name).name == name
        assert get_basis(get_basis(name)) is get_basis(name)
    with pytest.raises(ValueError, match=r"basis must be one of .*'chebyshev'.*, got 'fourier'"):
        get_basis("fourier")


@pytest.mark.parametrize("name", ["chebyshev", "legendre"])
@pytest.mark.parametrize("n", [25, 40])
def test_product_table_stays_exact_at_high_degree(name, n):
    basis = get_basis(name)
    values = basis.values(np.linspace(-1, 1, 101), 2 * n - 1)
    products = values[:n, None] * values[None, :n]
    np.testing.assert_allclose(np.tensordot(basis.product_table(n), values, axes=1), products, atol=1e-12)
