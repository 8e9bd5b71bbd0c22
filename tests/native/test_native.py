"""Compiled routines against einsum, on every level of the processor that there is."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from polytrain import native

LIBRARY = native._library(Path(native.__file__).parent)
if LIBRARY is None:
    pytest.skip("the compiled kernels were not built: there was no C compiler", allow_module_level=True)

SHAPES = [
    # near rank, functions, far rank, rows
    (1, 1, 1, 1),
    (1, 2, 1, 5),
    (2, 3, 5, 33),
    (8, 2, 8, 64),
    (3, 17, 4, 100),
    (16, 9, 12, 999),
    (5, 4, 33, 4500),
]


@pytest.fixture(params=[level for level in native._LEVELS if level <= LIBRARY.native_level()])
def level(request, monkeypatch):
    routines = native._load(LIBRARY, request.param)
    monkeypatch.setattr(native, "_routines", lambda: routines)
    return request.param


def close(actual, desired, dtype):
    tol = 1e-12 if dtype == np.float64 else 1e-5
    assert_allclose(actual, desired, rtol=tol, atol=tol * max(1.0, np.abs(desired).max()))


def make_rows(shape, dtype, n_knots=11, seed=0):
    """Rows at random places between knots, in lines that are apart by more than their length."""
    n_near, n, n_far, n_rows = shape
    rng = np.random.default_rng(seed)
    near, far = (rng.standard_normal((rank, n_rows + 3)).astype(dtype)[:, :n_rows] for rank in (n_near, n_far))
    knots = rng.standard_normal((n_knots + 1, n))
    knots[:, 0] = 1.0
    x = rng.uniform(0, n_knots - 1, n_rows).astype(dtype)
    x[:: max(1, n_rows // 3)] = n_knots - 1  # on the last knot that rows may be at
    before = x.astype(int)
    part = (x - before)[:, None]
    values = np.ascontiguousarray(((1 - part) * knots[before] + part * knots[before + 1]).T, dtype=dtype)
    return near, values, far, x, knots.astype(dtype)


def wide(*arrays):
    return [array.astype(np.float64) for array in arrays]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_dense_products_are_sums_over_rows(shape, dtype, level):
    near, values, far, _, _ = make_rows(shape, dtype)
    rng = np.random.default_rng(1)
    core = rng.standard_normal((shape[1] * shape[0], shape[2])).astype(dtype)
    cube = core.reshape(shape[1], shape[0], shape[2])
    factors = rng.uniform(0, 1, shape[3]).astype(dtype)
    spread = np.einsum("ij,aj->iaj", *wide(values, near)).reshape(len(core), -1)
    scores = np.einsum("kj,kb,bj->j", spread, *wide(core, far))
    rows = native.DenseRows(near, values, far)

    found, nothing = rows.product(cube, None, sums=False)
    assert found.dtype == dtype
    assert nothing is None
    close(found, scores, dtype)
    nothing, sums = rows.product(None, factors, sums=True)
    assert nothing is None
    assert sums.dtype == np.float64
    close(sums, (spread * factors) @ far.T, dtype)
    again, sums = rows.product(cube, factors, sums=True)
    assert_array_equal(again, found)
    close(sums, (spread * scores * factors) @ far.T, dtype)
    out = np.full((shape[2], shape[3] + 2), 7, dtype=dtype)
    rows.move(cube, out[:, : shape[3]])
    close(out[:, : shape[3]], core.T.astype(float) @ spread, dtype)
    assert (out[:, shape[3] :] == 7).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES[:5])
def test_moments_are_sums_of_pairs(shape, dtype, level):
    near, values, far, _, _ = make_rows(shape, dtype)
    weights = np.random.default_rng(1).uniform(0, 1, shape[3]).astype(dtype)
    one, other = np.triu_indices(shape[0]), np.triu_indices(shape[2])
    near_wide, far_wide, values_wide = wide(near, far, values)
    expected = np.einsum(
        "pj,mj,qj,j->mpq",
        near_wide[one[0]] * near_wide[one[1]],
        values_wide,
        far_wide[other[0]] * far_wide[other[1]],
        weights.astype(float),
    )
    found = native.dense_moments(near, values, far, weights)
    assert found.dtype == np.float64
    close(found, expected, dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_knots_give_what_all_functions_give(shape, dtype, level):
    near, values, far, x, knots = make_rows(shape, dtype)
    rng = np.random.default_rng(1)
    core = rng.standard_normal((shape[1], shape[0], shape[2])).astype(dtype)
    factors = rng.uniform(0, 1, shape[3]).astype(dtype)
    dense, local = native.DenseRows(near, values, far), native.LocalRows(x, near, far, knots)
    found, nothing = local.product(core, None, sums=False)
    assert found.dtype == dtype
    assert nothing is None
    close(found, dense.product(core, None, sums=False)[0], dtype)
    nothing, sums = local.product(None, factors, sums=True)
    assert nothing is None
    assert sums.dtype == np.float64
    close(sums, dense.product(None, factors, sums=True)[1], dtype)
    for found, expected in zip(local.product(core, factors, True), dense.product(core, factors, True), strict=True):
        close(found, expected, dtype)
    outs = np.empty((2, shape[2], shape[3]), dtype=dtype)
    close(local.move(core, outs[0]), dense.move(core, outs[1]), dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("place", [-1e9, -1.5, 1e9, np.inf, -np.inf, np.nan])
def test_no_position_reaches_beyond_the_tables(place, dtype, level):
    near, _, far, x, knots = make_rows((4, 3, 4, 50), dtype)
    x[::7] = place
    tables = native.knot_tables(knots, np.ones((3, 4, 4)))
    guarded = np.zeros((len(tables) + 200, *tables.shape[1:]), dtype=dtype)
    totals = guarded[100:-100]
    native.LocalRows(x, near, far, knots)._run(tables, np.ones(50, dtype), np.empty(50, dtype), totals)
    assert not guarded[:100].any()
    assert not guarded[-100:].any()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_rows", [1, 7, 1500])
def test_trains_are_products_of_matrices(n_rows, dtype, level):
    rng = np.random.default_rng(0)
    dims, ranks = (2, 4, 3), [(1, 3, 2, 1), (1, 2, 9, 1)]
    trains = [[rng.standard_normal((n, a, b)) for n, a, b in zip(dims, own, own[1:], strict=False)] for own in ranks]
    knots = [None, rng.standard_normal((9, 4)).astype(dtype), None]
    x = rng.uniform(0, 7, n_rows).astype(dtype)
    before = x.astype(int)
    between = knots[1][before].T * (1 - (x - before)) + knots[1][before + 1].T * (x - before)
    values = [rng.standard_normal((n, n_rows)).astype(dtype) for n in dims]
    values[0][0] = values[2][0] = 1.0
    expected = []
    for train in trains:
        state = np.ones((n_rows, 1))
        for core, seen in zip(train, [values[0], between, values[2]], strict=True):
            state = np.einsum("ja,iab,ij->jb", state, core, seen.astype(np.float64))
        expected.append(state[:, 0])
    found = native.Trains(trains, knots, np.dtype(dtype)).evaluate([values[0], x[None], values[2]])
    assert found.dtype == dtype
    close(found, np.array(expected), dtype)


def test_rows_must_be_contiguous():
    near = np.ones((3, 20))[:, ::2]
    with pytest.raises(ValueError, match="contiguous"):
        native.DenseRows(near, np.ones((1, 10)), np.ones((2, 10)))


def test_a_library_of_another_kind_is_passed_over(tmp_path):
    (tmp_path / "_kernels.so").write_bytes(b"no library at all")
    assert native._library(tmp_path) is None
    assert native._library(tmp_path / "nowhere") is None


def test_an_old_library_is_passed_over(monkeypatch):
    monkeypatch.setattr(native, "_INTERFACE", -1)
    assert native._library(Path(native.__file__).parent) is None


def test_it_can_be_switched_off(monkeypatch):
    monkeypatch.setattr(native, "enabled", False)
    assert not native.is_here()
    monkeypatch.setattr(native, "enabled", True)
    assert native.is_here()
    monkeypatch.setattr(native, "_routines", dict)
    assert not native.is_here()
