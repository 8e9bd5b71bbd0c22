import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import polytrain.tensor.decompose
import polytrain.tensor.stack
from polytrain.basis import get_basis
from polytrain.tensor import TensorTrain

dims_lists = st.lists(st.integers(1, 4), min_size=1, max_size=5)


def dense_reference(cores):
    """Multiply the cores with einsum, as the definition says."""
    result = np.asarray(cores[0], dtype=np.float64)
    for core in cores[1:]:
        result = np.einsum("...a,aib->...ib", result, core)
    return result[0, ..., 0]


@st.composite
def trains(draw, dims=None):
    """Trains of any ranks, too wide ones and cores of zeros included."""
    if dims is None:
        dims = draw(dims_lists)
    ranks = [1, *draw(st.lists(st.integers(1, 5), min_size=len(dims) - 1, max_size=len(dims) - 1)), 1]
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    cores = [rng.standard_normal((ranks[k], n, ranks[k + 1])) for k, n in enumerate(dims)]
    vanishing = draw(st.sampled_from([None] * 4 + list(range(len(dims)))))
    if vanishing is not None:
        cores[vanishing] = np.zeros_like(cores[vanishing])
    # A doubled slice makes a bond rank-deficient without a zero in sight.
    if draw(st.booleans()):
        cores[0][..., -1] = cores[0][..., 0]
    return TensorTrain(cores)


@st.composite
def train_pairs(draw):
    dims = draw(dims_lists)
    return draw(trains(dims)), draw(trains(dims))


def scale_of(*arrays):
    return max(1.0, *(np.abs(array).max() for array in arrays))


# The worked examples of the paper -------------------------------------------------------------------------------------


@pytest.fixture
def example_tensor():
    """Coefficients of 4*x1 + x1^3 - 2*x1*x2*x3 - 7*x2*x3^2."""
    tensor = np.zeros((4, 2, 3))
    tensor[1, 0, 0], tensor[3, 0, 0], tensor[1, 1, 1], tensor[0, 1, 2] = 4, 1, -2, -7
    return tensor


def test_paper_example_3_tt_svd_finds_ranks_3_and_3(example_tensor):
    train = TensorTrain.from_dense(example_tensor)
    assert [core.shape for core in train.cores] == [(1, 4, 3), (3, 2, 3), (3, 3, 1)]
    assert_allclose(train.to_dense(), example_tensor, atol=1e-14)
    assert repr(train) == "TensorTrain(dims=(4, 2, 3), ranks=(1, 3, 3, 1), n_parameters=39)"


def test_paper_example_2_entries(example_tensor):
    train = TensorTrain.from_dense(example_tensor)
    assert_allclose([train[1, 0, 0], train[3, 0, 0], train[1, 1, 1], train[0, 1, 2]], [4, 1, -2, -7], atol=1e-14)
    assert_allclose(train[0, 0, 0], 0, atol=1e-14)


def test_paper_example_1_values(example_tensor):
    X = np.random.default_rng(0).uniform(-2, 2, (50, 3))
    x1, x2, x3 = X.T
    expected = 4 * x1 + x1**3 - 2 * x1 * x2 * x3 - 7 * x2 * x3**2
    assert_allclose(TensorTrain.from_dense(example_tensor).evaluate(X), expected, atol=1e-12)


def test_paper_example_4_ten_variables_of_degree_nine_need_at_most_100_r_squared_numbers():
    for rank in (1, 2, 5, 10):
        train = TensorTrain.random((10,) * 10, rank, random_state=0)
        assert max(train.ranks) == rank
        assert train.n_parameters == sum(core.size for core in train.cores) <= 100 * rank**2


@pytest.mark.parametrize("x", [(1.0, 1.0), (0.3, -1.7), (-2.0, 0.0)])
def test_paper_example_5_lemma_1_at_the_second_core(x):
    coefficients = np.array([[1, -1, 9], [3, 7, 0], [-1, 0, 0]])
    train = TensorTrain.from_dense(coefficients)
    assert [core.shape for core in train.cores] == [(1, 3, 3), (3, 3, 1)]
    x1, x2 = x
    expected = 1 + 3 * x1 - x2 - x1**2 + 7 * x1 * x2 + 9 * x2**2
    v1, v2 = np.array([1, x1, x1**2]), np.array([1, x2, x2**2])
    p2 = np.einsum("aib,i->ab", train.cores[0], v1)
    q2 = np.ones((1, 1))
    by_lemma = np.kron(np.kron(q2.T, v2[None, :]), p2) @ train.cores[1].ravel(order="F")
    assert_allclose(by_lemma, [expected], atol=1e-12)
    assert_allclose(train.contract([v1, v2]), expected, atol=1e-12)
    assert_allclose(np.sum(np.outer(v1, v2) * coefficients), expected, atol=1e-12)


@given(trains(), st.integers(0, 1000))
def test_lemma_1_at_every_core(train, seed):
    """The value is linear in each core: (q (x) v (x) p) times vec(core), in Fortran order."""
    x = np.random.default_rng(seed).uniform(-1, 1, train.order)
    matrices = [
        np.einsum("aib,i->ab", core, xk ** np.arange(core.shape[1])) for core, xk in zip(train.cores, x, strict=True)
    ]
    expected = train.evaluate(x[None, :])[0]
    for k, core in enumerate(train.cores):
        p = np.linalg.multi_dot([np.eye(1), np.eye(1), *matrices[:k]])
        q = np.linalg.multi_dot([*matrices[k + 1 :], np.eye(1), np.eye(1)])
        c = np.kron(np.kron(q.T, x[k] ** np.arange(core.shape[1])[None, :]), p)
        assert_allclose(c @ core.ravel(order="F"), [expected], rtol=1e-9, atol=1e-9)


# Building -------------------------------------------------------------------------------------------------------------


@given(trains())
def test_dense_tensor_follows_the_definition(train):
    expected = dense_reference(train.cores)
    assert expected.shape == train.dims
    assert_allclose(train.to_dense(), expected, atol=1e-12 * scale_of(expected))


@given(dims_lists, st.integers(0, 1000))
def test_from_dense_is_exact_and_left_orthogonal(dims, seed):
    tensor = np.random.default_rng(seed).standard_normal(dims)
    train = TensorTrain.from_dense(tensor)
    assert_allclose(train.to_dense(), tensor, atol=1e-13)
    assert all(train.is_left_orthogonal(k) for k in range(train.order - 1))


@given(dims_lists, st.integers(0, 1000), st.sampled_from([0.01, 0.1, 0.5]))
def test_from_dense_keeps_its_tolerance_with_no_larger_ranks(dims, seed, tol):
    tensor = np.random.default_rng(seed).standard_normal(dims)
    train = TensorTrain.from_dense(tensor, tol=tol)
    assert np.linalg.norm(train.to_dense() - tensor) <= tol * np.linalg.norm(tensor) + 1e-12
    exact = TensorTrain.from_dense(tensor)
    assert all(small <= large for small, large in zip(train.ranks, exact.ranks, strict=True))


def test_from_dense_of_a_matrix_is_the_best_approximation():
    matrix = np.random.default_rng(0).standard_normal((6, 5))
    singular = np.linalg.svd(matrix, compute_uv=False)
    train = TensorTrain.from_dense(matrix, max_rank=2)
    assert train.ranks == (1, 2, 1)
    assert_allclose(np.linalg.norm(train.to_dense() - matrix), np.linalg.norm(singular[2:]))
    # A tolerance just above that error asks for the same rank, one just below for one more.
    relative = np.linalg.norm(singular[2:]) / np.linalg.norm(singular)
    assert TensorTrain.from_dense(matrix, tol=relative * 1.001).ranks == (1, 2, 1)
    assert TensorTrain.from_dense(matrix, tol=relative * 0.999).ranks == (1, 3, 1)


@pytest.mark.parametrize("factor", [1e-300, 1e-170, 1e170, 1e300])
def test_from_dense_does_not_depend_on_the_scale(factor):
    tensor = np.random.default_rng(0).standard_normal((3, 3, 3))
    train, scaled = TensorTrain.from_dense(tensor, tol=0.3), TensorTrain.from_dense(tensor * factor, tol=0.3)
    assert scaled.ranks == train.ranks
    assert_allclose(scaled.to_dense() / factor, train.to_dense(), rtol=1e-8, atol=1e-12)
    assert_allclose(scaled.norm() / factor, train.norm())


def test_zero_tensors():
    for train in (TensorTrain.zeros((2, 3, 1)), TensorTrain.from_dense(np.zeros((2, 3, 1)))):
        assert train.ranks == (1, 1, 1, 1)
        assert_array_equal(train.to_dense(), np.zeros((2, 3, 1)))
        assert train.norm() == 0
        assert train.inner(train) == 0
        assert train.round().ranks == (1, 1, 1, 1)
        assert train.orthogonalize(1).norm() == 0
    assert (train - train).allclose(train)


def test_rank_one_is_the_outer_product():
    vectors = [np.arange(3.0), np.array([2.0, -1.0]), np.arange(4.0)]
    train = TensorTrain.rank_one(vectors)
    assert train.ranks == (1, 1, 1, 1)
    assert_array_equal(train.to_dense(), np.einsum("i,j,k->ijk", *vectors))


def test_random_is_reproducible_and_has_unit_mean_square():
    one, two = (TensorTrain.random((2, 3, 4), 3, random_state=5) for _ in range(2))
    assert all(map(np.array_equal, one.cores, two.cores))
    assert not one.allclose(TensorTrain.random((2, 3, 4), 3, random_state=6))
    generators = [TensorTrain.random((2, 3), 2, random_state=np.random.default_rng(5)) for _ in range(2)]
    assert generators[0].allclose(generators[1])
    legacy = [TensorTrain.random((2, 3), 2, random_state=np.random.RandomState(5)) for _ in range(2)]
    assert legacy[0].allclose(legacy[1])
    rng = np.random.default_rng(0)
    squares = [TensorTrain.random((3, 4, 2, 5), 3, random_state=rng).norm() ** 2 for _ in range(2000)]
    assert_allclose(np.mean(squares), 1, atol=5 * np.std(squares) / 2000**0.5)


def test_cores_are_copied_contiguous_and_read_only():
    core = np.asfortranarray(np.random.default_rng(0).standard_normal((1, 4, 2)))
    train = TensorTrain([core, np.ones((2, 3, 1))])
    before = train.cores[0].copy()
    core[:] = 0
    assert_array_equal(train.cores[0], before)
    assert all(stored.flags.c_contiguous for stored in train.cores)
    with pytest.raises(ValueError, match="read-only"):
        train.cores[0][0, 0, 0] = 1


def test_dtype_is_float32_only_if_all_cores_are():
    single, double = np.ones((1, 2, 1), dtype=np.float32), np.ones((1, 2, 1))
    assert TensorTrain([single, single]).dtype == np.float32
    assert TensorTrain([single, double]).dtype == np.float64
    assert TensorTrain([np.ones((1, 2, 1), dtype=int)]).dtype == np.float64


def test_float32_stays_float32():
    train = TensorTrain.from_dense(np.random.default_rng(0).standard_normal((3, 2, 4)).astype(np.float32))
    X = np.random.default_rng(1).uniform(-1, 1, (10, 3))
    assert train.dtype == np.float32
    for derived in (train + train, 2 * train, np.float64(2) * train, train.orthogonalize(1), train.round()):
        assert derived.dtype == np.float32
    assert train.to_dense().dtype == np.float32
    assert train.evaluate(X.astype(np.float32)).dtype == np.float32
    assert train.evaluate(X).dtype == np.float64
    assert_allclose(train.evaluate(X.astype(np.float32)), train.evaluate(X), atol=1e-5)
    assert train.is_left_orthogonal(0)
    assert train.allclose(train.round(1e-6), rtol=1e-5)


@pytest.mark.parametrize(
    ("cores", "error", "message"),
    [
        ([], ValueError, r"cores must hold at least one core, got none\."),
        ([np.ones((1, 2))], ValueError, r"core 0 must have shape \(left rank, dimension, right rank\).*got \(1, 2\)"),
        ([np.ones((1, 0, 1))], ValueError, r"core 0 .* no empty axis, got \(1, 0, 1\)"),
        (
            [np.ones((1, 2, 3)), np.ones((2, 2, 1))],
            ValueError,
            r"cores 0 and 1 must share a rank, got right rank 3 and left rank 2\.",
        ),
        ([np.ones((2, 2, 1))], ValueError, r"left rank of the first core .* must be 1, got 2 and 1\."),
        ([np.ones((1, 2, 3))], ValueError, r"right rank of the last must be 1, got 1 and 3\."),
        ([np.ones((1, 2, 1), dtype=complex)], TypeError, r"core 0 must hold real numbers, got dtype complex128\."),
        ([np.full((1, 2, 1), "a")], TypeError, r"core 0 must hold real numbers, got dtype <U1\."),
    ],
)
def test_constructor_says_what_is_wrong(cores, error, message):
    with pytest.raises(error, match=message):
        TensorTrain(cores)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3.0,), ValueError, r"tensor must have at least one dimension and no empty one, got shape \(\)\."),
        ((np.ones((2, 0)),), ValueError, r"no empty one, got shape \(2, 0\)\."),
        (([1.0, np.nan],), ValueError, "tensor contains NaN or infinity"),
        (([1j, 2],), TypeError, "tensor must hold real numbers, got dtype complex128"),
        (([1, 2], -0.1), ValueError, r"tol must be a finite number of at least 0, got -0\.1\."),
        (([1, 2], np.nan), ValueError, r"tol must be a finite number of at least 0, got nan\."),
        (([1, 2], 0.0, 0), ValueError, r"max_rank must be a positive integer, got 0\."),
    ],
)
def test_from_dense_says_what_is_wrong(arguments, error, message):
    with pytest.raises(error, match=message):
        TensorTrain.from_dense(*arguments)


def test_rank_one_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"vector 1 must be one-dimensional, got shape \(1, 2\)\."):
        TensorTrain.rank_one([[1, 2], [[1, 2]]])


# Reading --------------------------------------------------------------------------------------------------------------


@given(trains(), st.data())
def test_entry_is_the_entry_of_the_dense_tensor(train, data):
    index = tuple(data.draw(st.integers(-n, n - 1)) for n in train.dims)
    dense = dense_reference(train.cores)
    assert_allclose(train[index], dense[index], rtol=1e-10, atol=1e-12 * scale_of(dense))


def test_entry_of_order_one_needs_no_tuple():
    assert TensorTrain([[[[1], [2]]]])[1] == 2


def test_entry_says_what_is_wrong():
    train = TensorTrain.zeros((2, 3))
    with pytest.raises(ValueError, match=r"index must have 2 integers, one per dimension, got 1\."):
        train[0]
    with pytest.raises(IndexError, match=r"index 1 is 3, out of range for dimension 3\."):
        train[0, 3]
    with pytest.raises(IndexError, match=r"index 0 is -3, out of range for dimension 2\."):
        train[-3, 0]
    with pytest.raises(TypeError, match=r"index 1 must be an integer, got slice.*use to_dense\(\) for slices"):
        train[0, :]


def test_train_is_not_iterable():
    with pytest.raises(TypeError, match="not iterable"):
        list(TensorTrain.zeros((2, 3)))


def test_to_dense_refuses_above_its_limit():
    train = TensorTrain.zeros((2, 3))
    assert train.to_dense(max_size=6).shape == (2, 3)
    with pytest.raises(ValueError, match=r"the dense tensor has 6 entries, more than max_size=5\."):
        train.to_dense(max_size=5)


@given(trains(), st.integers(0, 6), st.integers(0, 1000))
def test_contract_is_the_multilinear_form(train, n_rows, seed):
    rng = np.random.default_rng(seed)
    vectors = [rng.standard_normal((n, n_rows)) for n in train.dims]
    values = train.contract(vectors)
    assert values.shape == (n_rows,)
    dense = dense_reference(train.cores)
    for row in range(n_rows):
        expected = dense
        for vector in vectors:
            expected = np.tensordot(vector[:, row], expected, axes=(0, 0))
        single = train.contract([vector[:, row] for vector in vectors])
        assert isinstance(single, float)
        assert_allclose([values[row], single], expected, rtol=1e-9, atol=1e-9 * scale_of(dense))


def test_contract_says_what_is_wrong():
    train = TensorTrain.zeros((2, 3))
    with pytest.raises(ValueError, match=r"vectors must hold 2 arrays, one per dimension, got 1\."):
        train.contract([np.ones(2)])
    with pytest.raises(ValueError, match=r"vector 0 must have shape \(2,\) or \(2, N\), got \(3,\)\."):
        train.contract([np.ones(3), np.ones(3)])
    with pytest.raises(ValueError, match=r"vector 0 must have shape \(2,\) or \(2, N\), got \(2, 1, 1\)\."):
        train.contract([np.ones((2, 1, 1)), np.ones((3, 1, 1))])
    with pytest.raises(ValueError, match=r"vector 1 must have shape \(3, 5\), to go with vector 0, got \(3, 4\)\."):
        train.contract([np.ones((2, 5)), np.ones((3, 4))])


@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre", get_basis("legendre")])
@given(train=trains(), n_rows=st.integers(0, 6), seed=st.integers(0, 1000))
def test_evaluate_contracts_with_basis_values(basis, train, n_rows, seed):
    X = np.random.default_rng(seed).uniform(-1, 1, (n_rows, train.order))
    vectors = [get_basis(basis).values(column, n) for column, n in zip(X.T, train.dims, strict=True)]
    expected = train.contract(vectors)
    assert_allclose(train.evaluate(X, basis=basis), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("n_rows", [7, 8, 1000])
def test_blocks_of_rows_do_not_change_the_values(n_rows, monkeypatch):
    train = TensorTrain.random((3, 4, 3, 2), 5, random_state=0)
    X = np.random.default_rng(0).uniform(-1, 1, (n_rows, 4))
    whole = train.evaluate(X)
    monkeypatch.setattr(polytrain.tensor.stack.TrainStack, "block_rows", lambda self: 8)
    assert_allclose(train.evaluate(X), whole, rtol=1e-12)
    assert_allclose(train.evaluate(np.asfortranarray(X)), whole, rtol=1e-12)


def test_evaluate_takes_integers_and_lists():
    train = TensorTrain.rank_one([[1, 2], [0, 0, 1]])
    assert_array_equal(train.evaluate([[3, 2], [0, 1]]), [28, 1])


def test_evaluate_says_what_is_wrong():
    train = TensorTrain.zeros((2, 3))
    with pytest.raises(ValueError, match=r"X must have shape \(N, 2\).*got \(4, 3\)\."):
        train.evaluate(np.ones((4, 3)))
    with pytest.raises(ValueError, match=r"got \(2,\)\. A single row is X\.reshape\(1, -1\)\."):
        train.evaluate(np.ones(2))
    with pytest.raises(TypeError, match="X must hold real numbers, got dtype object"):
        train.evaluate(np.array([["a", None]], dtype=object))
    with pytest.raises(ValueError, match="basis must be one of"):
        train.evaluate(np.ones((4, 2)), basis="fourier")


# Algebra --------------------------------------------------------------------------------------------------------------


@given(train_pairs(), st.floats(-5, 5))
def test_algebra_is_that_of_dense_tensors(pair, scalar):
    one, two = pair
    dense_one, dense_two = dense_reference(one.cores), dense_reference(two.cores)
    tolerance = 1e-11 * scale_of(dense_one, dense_two)
    assert_allclose((one + two).to_dense(), dense_one + dense_two, atol=tolerance)
    assert_allclose((one - two).to_dense(), dense_one - dense_two, atol=tolerance)
    assert_allclose((-one).to_dense(), -dense_one, atol=tolerance)
    assert_allclose((one * scalar).to_dense(), scalar * dense_one, atol=5 * tolerance)
    assert_allclose((scalar * one).to_dense(), scalar * dense_one, atol=5 * tolerance)
    assert_allclose((one / 3).to_dense(), dense_one / 3, atol=tolerance)
    size = np.linalg.norm(dense_one) * np.linalg.norm(dense_two)
    assert_allclose(one.inner(two), np.sum(dense_one * dense_two), atol=1e-11 * max(1, size))
    assert_allclose(one.norm(), np.linalg.norm(dense_one), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2), 2])
def test_scalars_of_numpy_multiply_from_both_sides(scalar):
    train = TensorTrain.random((2, 3), 2, random_state=0)
    for product in (scalar * train, train * scalar, train / (1 / scalar)):
        assert isinstance(product, TensorTrain)
        assert_allclose(product.to_dense(), 2 * train.to_dense())


@pytest.mark.parametrize(
    "operation",
    [lambda t: t + 1, lambda t: 1 - t, lambda t: t - 1, lambda t: t * t, lambda t: t * "a", lambda t: t / t],
)
def test_operations_without_a_meaning_are_type_errors(operation):
    with pytest.raises(TypeError, match=r"unsupported operand|can't multiply"):
        operation(TensorTrain.zeros((2, 3)))


@pytest.mark.parametrize("method", ["__add__", "__sub__", "inner", "allclose"])
def test_different_dims_do_not_mix(method):
    with pytest.raises(ValueError, match=r"the trains must have the same dims, got \(2, 3\) and \(3, 2\)\."):
        getattr(TensorTrain.zeros((2, 3)), method)(TensorTrain.zeros((3, 2)))


@given(trains(), st.data())
def test_orthogonalize_keeps_the_tensor_and_moves_the_norm(train, data):
    position = data.draw(st.integers(0, train.order - 1))
    moved = train.orthogonalize(position)
    dense = dense_reference(train.cores)
    assert_allclose(moved.to_dense(), dense, atol=1e-11 * scale_of(dense))
    assert all(moved.is_left_orthogonal(k) for k in range(position))
    assert all(moved.is_right_orthogonal(k) for k in range(position + 1, train.order))
    assert_allclose(np.linalg.norm(moved.cores[position]), np.linalg.norm(dense), rtol=1e-11, atol=1e-13)
    assert all(new <= old for new, old in zip(moved.ranks, train.ranks, strict=True))


def test_orthogonality_follows_the_definition():
    core = np.zeros((2, 2, 1))
    core[0, 1, 0] = 1
    left_only = TensorTrain([np.ones((1, 3, 2)), core])
    assert left_only.is_left_orthogonal(1)
    assert not left_only.is_right_orthogonal(1)
    assert not left_only.is_left_orthogonal(0)
    right_only = TensorTrain([core.transpose(2, 1, 0), np.ones((2, 3, 1))])
    assert right_only.is_right_orthogonal(0)
    assert not right_only.is_left_orthogonal(0)


@pytest.mark.parametrize("position", [-1, 2])
@pytest.mark.parametrize("method", ["orthogonalize", "is_left_orthogonal", "is_right_orthogonal"])
def test_position_outside_the_train(method, position):
    with pytest.raises(ValueError, match=rf"position must be between 0 and 1, got {position}\."):
        getattr(TensorTrain.zeros((2, 3)), method)(position)


@given(trains(), st.sampled_from([0.0, 1e-10, 0.05, 0.3]))
def test_round_keeps_its_tolerance(train, tol):
    rounded = train.round(tol)
    dense = dense_reference(train.cores)
    assert np.linalg.norm(rounded.to_dense() - dense) <= tol * np.linalg.norm(dense) + 1e-11 * scale_of(dense)
    assert all(rounded.is_left_orthogonal(k) for k in range(train.order - 1))


@given(trains())
def test_round_finds_the_ranks_of_the_unfoldings(train):
    dense = dense_reference(train.cores)
    rounded = train.round(1e-9)
    for k in range(1, train.order):
        unfolding = dense.reshape(int(np.prod(train.dims[:k])), -1)
        rank = np.linalg.matrix_rank(unfolding, tol=1e-9 * max(np.linalg.norm(dense), 1e-300))
        assert rounded.ranks[k] <= max(rank, 1)


@given(train_pairs())
def test_a_sum_with_repeated_trains_rounds_to_the_ranks_of_the_distinct_ones(pair):
    one, two = pair
    ranks = (one + two + 2 * one - 3 * two).round().ranks[1:-1]
    assert all(rank <= a + b for rank, a, b in zip(ranks, one.ranks[1:-1], two.ranks[1:-1], strict=True))


def test_round_with_max_rank_is_quasi_optimal():
    tensor = np.random.default_rng(0).standard_normal((4, 4, 4, 4))
    rounded = TensorTrain.from_dense(tensor).round(max_rank=3)
    assert rounded.ranks == (1, 3, 3, 3, 1)
    tails = [np.linalg.norm(np.linalg.svd(tensor.reshape(4**k, -1), compute_uv=False)[3:]) for k in range(1, 4)]
    error = np.linalg.norm(rounded.to_dense() - tensor)
    assert max(tails) <= error * (1 + 1e-12)
    assert error <= np.linalg.norm(tails)


def test_round_says_what_is_wrong():
    with pytest.raises(ValueError, match=r"tol must be a finite number of at least 0, got inf\."):
        TensorTrain.zeros((2, 3)).round(np.inf)
    with pytest.raises(ValueError, match=r"max_rank must be a positive integer, got 1\.5\."):
        TensorTrain.zeros((2, 3)).round(max_rank=1.5)
    with pytest.raises(ValueError, match=r"core 1 contains NaN or infinity; all entries must be finite\."):
        TensorTrain([np.ones((1, 2, 1)), np.full((1, 2, 1), np.nan)]).round()


def test_round_survives_an_svd_that_does_not_converge(monkeypatch):
    train = TensorTrain.random((3, 3, 3), 2, random_state=0)
    svd = polytrain.tensor.decompose.scipy.linalg.svd
    drivers = []

    def failing_svd(matrix, full_matrices=True, lapack_driver="gesdd"):
        drivers.append(lapack_driver)
        if lapack_driver == "gesdd":
            raise np.linalg.LinAlgError("SVD did not converge")
        return svd(matrix, full_matrices=full_matrices, lapack_driver=lapack_driver)

    monkeypatch.setattr(polytrain.tensor.decompose.scipy.linalg, "svd", failing_svd)
    assert (train + train).round().ranks == (1, 2, 2, 1)
    assert drivers == ["gesdd", "gesvd"] * 2


def test_nearly_equal_large_trains_have_a_small_difference():
    """<A, A> - 2 <A, B> + <B, B> would lose this difference altogether."""
    train = TensorTrain.random((3,) * 6, 3, random_state=0)
    bump = TensorTrain.random((3,) * 6, 1, random_state=1) * 1e-10
    assert_allclose((train + bump - train).norm(), bump.norm(), rtol=1e-4)


@pytest.mark.parametrize("order", [784, 2000])
def test_long_trains_neither_overflow_nor_underflow(order):
    """Half of the cores are large and half are small, so that every product in order leaves the range of a float."""
    rng = np.random.default_rng(0)
    factors = [1e3] * (order // 2) + [1e-3] * (order // 2)
    vectors = [rng.standard_normal(2) for _ in factors]
    vectors = [vector / np.linalg.norm(vector) for vector in vectors]
    train = TensorTrain.rank_one([factor * vector for factor, vector in zip(factors, vectors, strict=True)])
    unit = TensorTrain.rank_one(vectors)
    assert_allclose(train.norm(), 1, rtol=1e-9)
    assert_allclose(train.inner(unit), 1, rtol=1e-9)
    assert_allclose(train.orthogonalize(order // 2).norm(), 1, rtol=1e-9)
    doubled = (train + train).round()
    assert set(doubled.ranks) == {1}
    assert_allclose(doubled.norm(), 2, rtol=1e-9)
    assert doubled.allclose(2 * unit, rtol=1e-8)


@given(trains(), st.sampled_from([1e-3, 1e-6]))
def test_allclose_measures_the_relative_distance(train, distance):
    moved = train * (1 + distance)
    assert train.allclose(train.orthogonalize(0))
    assert train.allclose(moved, rtol=2 * distance)
    if train.norm() > 0:
        assert not train.allclose(moved, rtol=0.5 * distance)
        assert not train.allclose(-1 * train)
    assert train.allclose(moved, rtol=0, atol=2 * distance * train.norm())


# Objects --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda train: pickle.loads(pickle.dumps(train))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_and_pickles(clone, dtype):
    train = TensorTrain([np.arange(6, dtype=dtype).reshape(1, 3, 2), np.ones((2, 2, 1), dtype=dtype)])
    other = clone(train)
    assert all(map(np.array_equal, train.cores, other.cores))
    assert other.dtype == dtype
    assert not other.cores[0].flags.writeable


def test_repr_of_a_long_train_stays_short():
    train = TensorTrain.random((2,) * 784, 3, random_state=0)
    assert repr(train) == "TensorTrain(dims=(2, 2, 2, ..., 2), ranks=(1, 2, 3, ..., 1), n_parameters=14072)"


def test_attributes():
    train = TensorTrain.random((4, 2, 3), 2, random_state=0)
    assert train.dims == (4, 2, 3)
    assert train.ranks == (1, 2, 2, 1)
    assert train.order == 3
    assert train.n_parameters == 8 + 8 + 6
