import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import polytrain.tensor.terms
from polytrain.tensor import Polynomial, TensorTrain

EXAMPLE = {(1, 0, 0): 4.0, (3, 0, 0): 1.0, (1, 1, 1): -2.0, (0, 1, 2): -7.0}


@st.composite
def polynomials(draw, n_variables=None):
    n_variables = n_variables or draw(st.integers(1, 4))
    exponents = st.tuples(*[st.integers(0, 3)] * n_variables)
    coefficients = st.floats(-10, 10).map(lambda value: round(value, 3))
    terms = draw(st.dictionaries(exponents, coefficients, max_size=8))
    return Polynomial(terms, n_variables=n_variables)


def value_by_definition(terms, x):
    return sum(
        c * np.prod([float(xk) ** e for xk, e in zip(x, exponents, strict=True)]) for exponents, c in terms.items()
    )


# The worked examples of the paper -------------------------------------------------------------------------------------


def test_paper_example_1_prints_as_written_and_has_pure_power_degrees():
    polynomial = Polynomial(EXAMPLE)
    assert str(polynomial) == "4*x1 + x1^3 - 2*x1*x2*x3 - 7*x2*x3^2"
    assert polynomial.degrees == (3, 1, 2)
    assert polynomial.n_variables == 3
    assert polynomial.n_terms == 4


def test_paper_example_2_tensor_has_these_four_entries():
    tensor = Polynomial(EXAMPLE).to_dense()
    assert tensor.shape == (4, 2, 3)
    entries = {tuple(i + 1 for i in index): tensor[index] for index in zip(*np.nonzero(tensor), strict=True)}
    assert entries == {(2, 1, 1): 4, (4, 1, 1): 1, (2, 2, 2): -2, (1, 2, 3): -7}


@pytest.mark.parametrize("tol", [None, 0.0, 1e-10])
def test_paper_example_3_ranks(tol):
    train = Polynomial(EXAMPLE).to_train(tol=tol)
    assert [core.shape for core in train.cores] == [(1, 4, 3), (3, 2, 3), (3, 3, 1)]
    assert_allclose(train.to_dense(), Polynomial(EXAMPLE).to_dense(), atol=1e-14)


def test_paper_example_4_ten_variables_of_degree_nine():
    terms = {(9,) * 10: 2.0, (0,) * 10: -1.0, (1, 2, 3, 4, 5, 6, 7, 8, 9, 0): 0.5}
    polynomial = Polynomial(terms)
    train = polynomial.to_train()
    assert train.dims == (10,) * 10
    assert train.ranks == (1, *(3,) * 8, 2, 1)
    assert train.n_parameters <= 100 * 3**2
    X = np.random.default_rng(0).uniform(-1, 1, (20, 10))
    assert_allclose(train.evaluate(X), polynomial(X), atol=1e-14)


def test_paper_example_5_quadratic():
    matrix = [[1, -1, 9], [3, 7, 0], [-1, 0, 0]]
    polynomial = Polynomial.from_dense(matrix)
    assert str(polynomial) == "1 + 3*x1 - x2 - x1^2 + 7*x1*x2 + 9*x2^2"
    assert_array_equal(polynomial.to_dense(), matrix)
    x1, x2 = 0.5, -2.0
    assert_allclose(polynomial([x1, x2]), 1 + 3 * x1 - x2 - x1**2 + 7 * x1 * x2 + 9 * x2**2)


# Terms and tensors ----------------------------------------------------------------------------------------------------


def test_terms_are_sorted_without_zeros_whatever_the_order_given():
    for order in itertools.permutations(EXAMPLE.items()):
        polynomial = Polynomial({(2, 0, 0): 0.0, **dict(order)})
        assert list(polynomial.terms.items()) == list(EXAMPLE.items())
        assert polynomial == Polynomial(EXAMPLE)


@given(polynomials())
def test_dense_round_trip(polynomial):
    dense = polynomial.to_dense()
    assert dense.shape == tuple(degree + 1 for degree in polynomial.degrees)
    for index in np.ndindex(dense.shape):
        assert dense[index] == polynomial.terms.get(index, 0)
    assert Polynomial.from_dense(dense) == polynomial
    assert Polynomial.from_dense(dense).degrees == polynomial.degrees


def test_degrees_may_be_larger_than_needed():
    polynomial = Polynomial({(1, 0): 2}, degrees=(3, 1))
    assert polynomial.to_dense().shape == (4, 2)
    assert polynomial.to_train().dims == (4, 2)
    assert polynomial == Polynomial({(1, 0): 2})


@given(polynomials(), st.sampled_from([0.0, 1e-10]))
def test_rounded_train_has_the_coefficients_and_the_ranks_of_tt_svd(polynomial, tol):
    train = polynomial.to_train(tol=tol)
    dense = polynomial.to_dense()
    assert_allclose(train.to_dense(), dense, atol=1e-8 * max(1, np.abs(dense).max()))
    assert train.ranks == TensorTrain.from_dense(dense, tol=tol).ranks


@given(polynomials())
def test_unrounded_train_is_exact(polynomial):
    train = polynomial.to_train(tol=None)
    assert_array_equal(train.to_dense(), polynomial.to_dense())
    assert Polynomial.from_train(train) == polynomial
    allowed = {0.0, 1.0, *polynomial.terms.values()}
    assert all(set(core.ravel().tolist()) <= allowed for core in train.cores)


@given(st.integers(1, 4), st.sets(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=30), st.integers(0, 100))
def test_unrounded_ranks_are_those_of_generic_coefficients(n_variables, exponents, seed):
    """For random coefficients the smallest vertex cover is the rank of the unfolding, so rounding gains nothing."""
    rng = np.random.default_rng(seed)
    keys = {key[:n_variables] for key in exponents}
    polynomial = Polynomial({key: rng.uniform(1, 2) for key in sorted(keys)})
    dense = polynomial.to_dense()
    for k, rank in enumerate(polynomial.to_train(tol=None).ranks[1:-1], start=1):
        assert rank == np.linalg.matrix_rank(dense.reshape(int(np.prod(dense.shape[:k])), -1))


@pytest.mark.parametrize("tol", [None, 0.0])
def test_many_variables_need_no_dense_tensor(tol):
    d = 200
    rng = np.random.default_rng(0)
    unit = np.eye(d, dtype=int)
    linear = Polynomial({tuple(row): rng.standard_normal() for row in unit} | {(0,) * d: 1.0})
    train = linear.to_train(tol=tol)
    assert train.ranks == (1, *(2,) * (d - 1), 1)
    assert Polynomial.from_train(train, tol=1e-10).allclose(linear)
    neighbours = linear + Polynomial({tuple(unit[k] + unit[k + 1]): float(k + 1) for k in range(d - 1)})
    train = neighbours.to_train(tol=tol)
    assert train.ranks == (1, 2, *(3,) * (d - 3), 2, 1)
    X = rng.uniform(-1, 1, (10, d))
    assert_allclose(train.evaluate(X), neighbours(X), rtol=1e-10)


def test_all_pairs_need_a_rank_that_grows_like_half_of_the_variables():
    d = 30
    rng = np.random.default_rng(0)
    unit = np.eye(d, dtype=int)
    pairs = {tuple(unit[i] + unit[j]): rng.standard_normal() for i in range(d) for j in range(i)}
    exact = Polynomial(pairs).to_train(tol=None)
    assert max(exact.ranks) == d // 2 + 2
    assert Polynomial.from_train(exact) == Polynomial(pairs)


def test_rounding_finds_the_rank_that_only_the_values_show():
    product = Polynomial({(0,) * 8: 1.0})
    for k in range(8):
        product = product * Polynomial({(0,) * 8: 1.0, tuple(np.eye(8, dtype=int)[k]): 2.0})
    assert product.n_terms == 2**8
    assert max(product.to_train(tol=None).ranks) == 2**4
    assert set(product.to_train().ranks) == {1}


def test_max_rank_limits_the_train_also_without_a_tolerance():
    polynomial = Polynomial(EXAMPLE)
    for tol in (None, 0.0):
        train = polynomial.to_train(tol=tol, max_rank=2)
        assert train.ranks == (1, 2, 2, 1)
        best = TensorTrain.from_dense(polynomial.to_dense(), max_rank=2)
        assert_allclose((train - polynomial.to_train()).norm(), (best - polynomial.to_train()).norm())


@pytest.mark.parametrize("tol", [None, 0.0, 0.1])
def test_zero_polynomial(tol):
    zero = Polynomial({}, degrees=(1, 2))
    assert str(zero) == "0"
    assert zero.n_terms == 0
    train = zero.to_train(tol=tol)
    assert train.dims == (2, 3)
    assert train.norm() == 0
    assert Polynomial.from_train(train) == zero
    assert Polynomial.from_train(train, tol=1.0) == zero
    assert_array_equal(zero(np.ones((3, 2))), np.zeros(3))
    assert Polynomial({(1, 1): 2.0}) * 0 == zero


@given(st.lists(st.integers(1, 3), min_size=1, max_size=5), st.integers(1, 4), st.integers(0, 1000), st.floats(0, 1))
def test_from_train_finds_exactly_the_entries_above_the_threshold(dims, rank, seed, tol):
    train = TensorTrain.random(dims, rank, random_state=seed)
    dense = train.to_dense()
    polynomial = Polynomial.from_train(train, tol=tol)
    assert polynomial.degrees == tuple(n - 1 for n in dims)
    expected = np.where(np.abs(dense) > tol, dense, 0)
    assert_allclose(polynomial.to_dense(), expected, atol=1e-12)


def test_from_train_finds_a_few_large_terms_among_very_many_small_ones():
    d = 60
    rng = np.random.default_rng(0)
    terms = {tuple(rng.integers(0, 3, d)): value for value in (3.0, -2.0, 1.5)}
    noise = 1e-6 * TensorTrain.random((3,) * d, 3, random_state=0)
    train = Polynomial(terms, degrees=(2,) * d).to_train() + noise
    found = Polynomial.from_train(train, tol=1e-3, max_size=1000)
    assert found.allclose(Polynomial(terms), rtol=1e-5)


@pytest.mark.parametrize("basis", ["power", "chebyshev", "legendre"])
def test_from_train_rewrites_any_basis_in_powers(basis):
    train = TensorTrain.random((4, 3, 5), 3, random_state=0)
    X = np.random.default_rng(0).uniform(-1, 1, (20, 3))
    assert_allclose(Polynomial.from_train(train, basis=basis)(X), train.evaluate(X, basis=basis), atol=1e-12)


def test_limits_of_size():
    with pytest.raises(ValueError, match=r"the dense tensor has 24 entries, more than max_size=23\."):
        Polynomial(EXAMPLE).to_dense(max_size=23)
    assert Polynomial(EXAMPLE).to_train(tol=None, max_size=39).n_parameters == 39
    with pytest.raises(ValueError, match=r"the train needs rank 1 after variable 3 and more than max_size=38 numbers"):
        Polynomial(EXAMPLE).to_train(tol=None, max_size=38)
    with pytest.raises(ValueError, match=r"the train needs rank 3 after variable 2 and more than max_size=20 numbers"):
        Polynomial(EXAMPLE).to_train(max_size=20)
    train = TensorTrain.random((3, 3, 3), 2, random_state=0)
    assert Polynomial.from_train(train, max_size=27).n_terms == 27
    with pytest.raises(ValueError, match=r"more than max_size=26 terms are left after variable 3 of 3\. Raise tol"):
        Polynomial.from_train(train, max_size=26)


# Values ---------------------------------------------------------------------------------------------------------------


@given(polynomials(), st.integers(0, 1000))
def test_values_follow_the_definition(polynomial, seed):
    X = np.random.default_rng(seed).uniform(-2, 2, (5, polynomial.n_variables))
    expected = [value_by_definition(polynomial.terms, x) for x in X]
    assert_allclose(polynomial(X), expected, rtol=1e-9, atol=1e-9)
    assert isinstance(polynomial(X[0]), float)
    assert_allclose(polynomial(X[0]), expected[0], rtol=1e-9, atol=1e-9)


def test_blocks_of_rows_do_not_change_the_values(monkeypatch):
    X = np.random.default_rng(0).uniform(-1, 1, (50, 3))
    whole = Polynomial(EXAMPLE)(X)
    monkeypatch.setattr(polytrain.tensor.terms, "_BLOCK_SIZE", 1)
    assert_allclose(Polynomial(EXAMPLE)(X), whole, rtol=1e-12)


def test_values_at_integers_zeros_and_no_rows():
    polynomial = Polynomial.parse("1 + x1^2*x2 - 3*x2^3")
    assert polynomial([0, 0]) == 1
    assert polynomial([2, -1]) == 0
    assert polynomial(np.empty((0, 2))).shape == (0,)


# Algebra --------------------------------------------------------------------------------------------------------------


@given(st.integers(1, 3).flatmap(lambda d: st.tuples(polynomials(d), polynomials(d))), st.floats(-3, 3))
def test_algebra_is_that_of_values(pair, scalar):
    one, two = pair
    X = np.random.default_rng(0).uniform(-1, 1, (5, one.n_variables))
    tolerance = {"rtol": 1e-9, "atol": 1e-9}
    assert_allclose((one + two)(X), one(X) + two(X), **tolerance)
    assert_allclose((one - two)(X), one(X) - two(X), **tolerance)
    assert_allclose((one * two)(X), one(X) * two(X), **tolerance)
    assert_allclose((-one)(X), -one(X), **tolerance)
    assert_allclose((scalar * one)(X), scalar * one(X), **tolerance)
    assert_allclose((one * scalar)(X), scalar * one(X), **tolerance)
    assert_allclose((one + scalar)(X), one(X) + scalar, **tolerance)
    assert_allclose((scalar - one)(X), scalar - one(X), **tolerance)
    assert one - one == 0 * one
    assert one + two == two + one


def test_degrees_of_sums_and_products():
    one, two = Polynomial({(1, 0): 1}, degrees=(3, 0)), Polynomial({(0, 1): 1}, degrees=(1, 2))
    assert (one + two).degrees == (3, 2)
    assert (one * two).degrees == (4, 2)
    assert (2 * one).degrees == (3, 0)


@pytest.mark.parametrize("scalar", [np.float64(2), np.float32(2), np.int64(2), 2])
def test_scalars_of_numpy_work_from_both_sides(scalar):
    polynomial = Polynomial(EXAMPLE)
    assert scalar * polynomial == polynomial * scalar == polynomial + polynomial
    assert scalar + polynomial == polynomial + scalar == polynomial + 2
    assert scalar - polynomial == -(polynomial - scalar)


@pytest.mark.parametrize(
    "operation", [lambda p: p + "a", lambda p: p - "a", lambda p: "a" - p, lambda p: p * None, lambda p: [1] - p]
)
def test_operations_without_a_meaning_are_type_errors(operation):
    with pytest.raises(TypeError, match="unsupported operand"):
        operation(Polynomial(EXAMPLE))


@pytest.mark.parametrize("method", ["__add__", "__sub__", "__mul__", "allclose"])
def test_different_numbers_of_variables_do_not_mix(method):
    with pytest.raises(ValueError, match=r"the polynomials must have the same number of variables, got 3 and 2\."):
        getattr(Polynomial(EXAMPLE), method)(Polynomial({(1, 1): 1}))


def test_equality_and_hash():
    polynomial, same = Polynomial(EXAMPLE), Polynomial(dict(reversed(EXAMPLE.items())), degrees=(4, 4, 4))
    assert polynomial == same
    assert hash(polynomial) == hash(same)
    assert polynomial != polynomial + 1e-12
    assert Polynomial({(1,): 1.0}) != Polynomial({(1, 0): 1.0})
    assert polynomial != "4*x1"


def test_allclose_is_relative_to_the_larger_norm():
    one = Polynomial({(1, 0): 3.0, (0, 1): 4.0})
    near = one + Polynomial({(0, 0): 1e-3})
    assert one.allclose(near, rtol=2.1e-4)
    assert not one.allclose(near, rtol=1.9e-4)
    assert one.allclose(near, rtol=0, atol=1.1e-3)
    assert not one.allclose(near, rtol=0, atol=0.9e-3)
    assert one.allclose(one)


# Text -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ({(0,): 1.0}, "1"),
        ({(0,): -1.0}, "-1"),
        ({(1,): 1.0}, "x1"),
        ({(1,): -1.0}, "-x1"),
        ({(2,): -1.5, (0,): 2.0}, "2 - 1.5*x1^2"),
        ({(0, 1): 1.0, (1, 0): 1.0, (0, 0): 1.0}, "1 + x1 + x2"),
        ({(0, 2): 1.0, (1, 1): 1.0, (2, 0): 1.0}, "x1^2 + x1*x2 + x2^2"),
        ({(1,): 1 / 3}, "0.333333*x1"),
        ({(1,): 1 - 1e-12}, "x1"),
        ({(1,): 1e-20}, "1e-20*x1"),
        ({}, "0"),
    ],
)
def test_printing(terms, text):
    assert str(Polynomial(terms, n_variables=None if terms else 1)) == text


def test_names_and_precision():
    polynomial = Polynomial({(1, 2): -1.0, (1, 0): 2 / 3})
    assert polynomial.to_string(names=["a", "b"], precision=2) == "0.67*a - a*b^2"
    assert polynomial.to_string(precision=None) == "0.6666666666666666*x1 - x1*x2^2"


def test_repr_stays_short():
    assert repr(Polynomial({(1,): 2.0})) == "Polynomial('2*x1', n_variables=1)"
    many = Polynomial.from_dense(np.ones(10))
    assert repr(many) == "Polynomial('1 + x1 + x1^2 + x1^3 + x1^4 + x1^5 + x1^6 + x1^7 + ...', n_variables=1)"


@given(polynomials(), st.booleans())
def test_printed_polynomial_reads_back(polynomial, named):
    names = ["x", "x2", "speed (m/s)", "a"][: polynomial.n_variables] if named else None
    text = polynomial.to_string(names=names, precision=None)
    if named:
        assert Polynomial.parse(text, names=names) == polynomial
    elif any(exponents[-1] for exponents in polynomial.terms):
        assert Polynomial.parse(text) == polynomial


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("x1", {(1,): 1}),
        ("  - x1 ", {(1,): -1}),
        ("+2.5e-1*x1**2*3", {(2,): 0.75}),
        ("x1*x2*x1 - .5 * x2^3+1.", {(2, 1): 1, (0, 3): -0.5, (0, 0): 1}),
        ("x1 + x1 - 2*x1 + x2", {(0, 1): 1}),
        ("x1^0*x2", {(0, 1): 1}),
        ("x10", {(0,) * 9 + (1,): 1}),
    ],
)
def test_parsing(text, terms):
    assert Polynomial.parse(text).terms == terms


@pytest.mark.parametrize(
    ("text", "position"),
    [("", 0), ("2x1", 1), ("x1^", 2), ("x1 x2", 3), ("x0", 0), ("x1 + ", 3), ("(x1)", 0), ("x1 + + x2", 3), ("1e", 1)],
)
def test_parser_points_at_what_it_cannot_read(text, position):
    with pytest.raises(ValueError, match=rf"cannot read the polynomial at character {position}, .*such as 2\*x1\^3"):
        Polynomial.parse(text)


def test_parser_needs_a_variable_and_known_names():
    with pytest.raises(ValueError, match="number of variables is unknown or zero"):
        Polynomial.parse("5")
    assert Polynomial.parse("5", names=["a", "b"]).terms == {(0, 0): 5}
    with pytest.raises(ValueError, match=r"at character 2, '\+ c': write terms such as 2\*a\^3"):
        Polynomial.parse("a + c", names=["a", "b"])


def test_names_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"names must have 3 strings, one per variable, got 2\."):
        Polynomial(EXAMPLE).to_string(names=["a", "b"])
    with pytest.raises(ValueError, match=r"names must be different and not empty, got \['a', 'a', 'b'\]\."):
        Polynomial(EXAMPLE).to_string(names=["a", "a", "b"])
    with pytest.raises(ValueError, match="names must be different and not empty"):
        Polynomial.parse("a", names=["a", ""])


# Objects and errors ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_copies_and_pickles(clone):
    polynomial = Polynomial(EXAMPLE, degrees=(3, 3, 3))
    other = clone(polynomial)
    assert other == polynomial
    assert other.degrees == (3, 3, 3)


def test_changing_the_returned_terms_does_not_change_the_polynomial():
    polynomial = Polynomial(EXAMPLE)
    polynomial.terms[0, 0, 0] = 5.0
    assert polynomial.terms == EXAMPLE


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({},), "number of variables is unknown or zero; give n_variables or degrees"),
        (({(): 1.0},), "number of variables is unknown or zero"),
        (({(1, 0): 1.0}, 3), r"every term must have 3 exponents, integers of at least 0, got \(1, 0\)\."),
        (({(1, 0): 1.0, (1,): 1.0},), r"every term must have 2 exponents, .* got \(1,\)\."),
        (({(-1, 0): 1.0},), r"integers of at least 0, got \(-1, 0\)\."),
        (({(0.5, 0): 1.0},), r"integers of at least 0, got \(0\.5, 0\)\."),
        (({(1, 0): np.nan},), r"the coefficient of \(1, 0\) must be finite, got nan\."),
        (({(1, 0): 1.0}, 2, (1,)), r"degrees must have 2 numbers, one per variable, got 1\."),
        (({(1, 2): 1.0}, None, (1, 1)), r"degrees\[1\] must be at least 2, which a term has, got 1\."),
        (({}, None, (1, -1)), r"degrees\[1\] must be at least 0, .* got -1\."),
    ],
)
def test_constructor_says_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        Polynomial(*arguments)


@pytest.mark.parametrize(
    ("tensor", "error", "message"),
    [
        (2.0, ValueError, r"tensor must have at least one dimension and no empty one, got shape \(\)\."),
        (np.ones((0, 2)), ValueError, r"no empty one, got shape \(0, 2\)\."),
        ([1.0, np.inf], ValueError, "tensor contains NaN or infinity; all entries must be finite"),
        ([1j], TypeError, "tensor must hold real numbers, got dtype complex128"),
    ],
)
def test_from_dense_says_what_is_wrong(tensor, error, message):
    with pytest.raises(error, match=message):
        Polynomial.from_dense(tensor)


def test_trains_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"tol must be a finite number of at least 0, got -1\."):
        Polynomial.from_train(TensorTrain.zeros((2,)), tol=-1)
    with pytest.raises(ValueError, match="basis must be one of"):
        Polynomial.from_train(TensorTrain.zeros((2,)), basis="fourier")
    with pytest.raises(ValueError, match="core 0 contains NaN or infinity; all entries must be finite"):
        Polynomial.from_train(TensorTrain([np.full((1, 2, 1), np.inf)]))
    with pytest.raises(ValueError, match=r"tol must be a finite number of at least 0, got -1\."):
        Polynomial(EXAMPLE).to_train(tol=-1)
    with pytest.raises(ValueError, match=r"max_rank must be a positive integer, got 0\."):
        Polynomial(EXAMPLE).to_train(tol=None, max_rank=0)


def test_values_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"X must have shape \(N, 3\) or \(3,\), got \(4, 2\)\."):
        Polynomial(EXAMPLE)(np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"X must have shape \(N, 3\) or \(3,\), got \(\)\."):
        Polynomial(EXAMPLE)(1.0)
    with pytest.raises(TypeError, match="X must hold real numbers, got dtype complex128"):
        Polynomial(EXAMPLE)([1j, 1, 1])
