"""Columns of any type become numbers, the same ones whatever library the column comes from."""

import datetime
import json
import math
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from polytrain.columns import CategoryColumn, Columns, DateColumn, NumberColumn, is_frame, needs_encoding
from polytrain.columns.cells import Cells
from polytrain.columns.scalars import text_of

NAN = math.nan
DAY = datetime.timedelta(days=1)
EPOCH = datetime.datetime(1970, 1, 1)
TOKYO = ZoneInfo("Asia/Tokyo")


# --- the slow, obvious way --------------------------------------------------------------------------------------------


def slow_number(value):
    if value is None:
        return NAN
    return value / DAY if isinstance(value, datetime.timedelta) else float(value)


def slow_dates(training, values):
    """The parts of dates as columns, one cell after another."""

    def moment(value):
        if not isinstance(value, datetime.datetime):
            return datetime.datetime(value.year, value.month, value.day)
        return value.replace(tzinfo=None)

    def hour(value):
        return value.hour + value.minute / 60 + (value.second + value.microsecond / 1e6) / 3600

    parts = {
        "time": lambda value: (value - EPOCH) / DAY,
        "month": lambda value: value.month,
        "weekday": lambda value: value.weekday(),
        "hour": hour,
    }
    known = [moment(value) for value in training if value is not None]
    kept = [name for name, part in parts.items() if name == "time" or len({part(value) for value in known}) > 1]
    return kept, [[NAN if v is None else parts[name](moment(v)) for v in values] for name in kept]


def slow_codes(training, values):
    known = [value for value in training if value is not None]
    levels = sorted({v for v in known if not isinstance(v, str)}) + sorted({v for v in known if isinstance(v, str)})
    codes = [NAN if v is None else float(levels.index(v)) if v in levels else -1.0 for v in values]
    return levels, codes


def slow_encode(training, values, categories=()):
    """Names and features of columns that are dicts of lists with None where a value is missing."""
    names, features = [], []
    for name, cells in training.items():
        known = [value for value in cells if value is not None]
        if not known:
            names.append(name)
            features.append([slow_number(value) for value in values[name]])
        elif name in categories or isinstance(known[0], str):
            names.append(name)
            features.append(slow_codes(cells, values[name])[1])
        elif isinstance(known[0], datetime.date):
            kept, columns = slow_dates(cells, values[name])
            names += [f"{name} ({part})" for part in kept]
            features += columns
        else:
            names.append(name)
            features.append([slow_number(value) for value in values[name]])
    return tuple(names), np.array(features, dtype=float).T


def random_lists(rng, n_rows, missing=0.2):
    """Lists of Python values of all sorts, by the name of the sort."""

    def some(make):
        return [None if rng.random() < missing else make() for _ in range(n_rows)]

    def moment():
        return datetime.datetime(2020, 1, 1) + datetime.timedelta(seconds=int(rng.integers(-(10**9), 10**9)))

    return {
        "float": some(lambda: float(rng.normal())),
        "int": some(lambda: int(rng.integers(-(2**62), 2**62))),
        "small": some(lambda: int(rng.integers(5))),
        "bool": some(lambda: bool(rng.integers(2))),
        "decimal": some(lambda: Decimal(int(rng.integers(-999, 999))) / 8),
        "text": some(lambda: str(rng.choice(["", "a", "B", "ä", "1", "nan", "None"]))),
        "category": some(lambda: str(rng.choice(["low", "mid", "high"]))),
        "date": some(lambda: moment().date()),
        "moment": some(moment),
        "zone": some(lambda: moment().replace(tzinfo=TOKYO)),
        "duration": some(lambda: datetime.timedelta(seconds=int(rng.integers(-(10**6), 10**6)))),
        "empty": [None] * n_rows,
    }


# --- frames of the same values ----------------------------------------------------------------------------------------


def pandas_objects(lists):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({name: pd.Series(cells, dtype=object) for name, cells in lists.items()})


def pandas_typed(lists):
    pd = pytest.importorskip("pandas")
    types = {
        "float": "float64", "int": "Int64", "small": "Int8", "bool": "boolean", "decimal": object, "text": "str",
        "category": "category", "date": object, "moment": "datetime64[us]", "zone": "datetime64[us, Asia/Tokyo]",
        "duration": "timedelta64[us]", "empty": object,
    }  # fmt: skip
    return pd.DataFrame({name: pd.Series(cells, dtype=types[name]) for name, cells in lists.items()})


def pandas_nullable(lists):
    pd = pytest.importorskip("pandas")
    types = {
        "float": "Float64", "int": "Int64", "small": "UInt8", "bool": "boolean", "text": "string",
        "category": "category", "moment": "datetime64[ns]", "zone": "datetime64[ns, Asia/Tokyo]",
        "duration": "timedelta64[ns]", "empty": "Int64",
    }  # fmt: skip
    return pd.DataFrame({name: pd.Series(cells, dtype=types.get(name, object)) for name, cells in lists.items()})


def pandas_arrow(lists):
    pd = pytest.importorskip("pandas")
    pa = pytest.importorskip("pyarrow")
    types = {
        "float": pa.float64(), "int": pa.int64(), "small": pa.int8(), "bool": pa.bool_(),
        "decimal": pa.decimal128(20, 6), "text": pa.string(), "category": pa.string(), "date": pa.date32(),
        "moment": pa.timestamp("us"), "zone": pa.timestamp("us", "Asia/Tokyo"), "duration": pa.duration("us"),
        "empty": pa.null(),
    }  # fmt: skip
    return pd.DataFrame(
        {name: pd.Series(pd.array(cells, dtype=pd.ArrowDtype(types[name]))) for name, cells in lists.items()}
    )


def polars_typed(lists):
    pl = pytest.importorskip("polars")
    types = {
        "float": pl.Float64, "int": pl.Int64, "small": pl.UInt16, "bool": pl.Boolean, "decimal": pl.Decimal(20, 6),
        "text": pl.String, "category": pl.Categorical, "date": pl.Date, "moment": pl.Datetime("us"),
        "zone": pl.Datetime("ms", "Asia/Tokyo"), "duration": pl.Duration("ms"), "empty": pl.Null,
    }  # fmt: skip
    return pl.DataFrame([pl.Series(name, cells, dtype=types[name]) for name, cells in lists.items()])


def polars_others(lists):
    pl = pytest.importorskip("polars")
    levels = pl.Enum(["high", "unused", "mid", "low", "new"])
    types = {
        "int": pl.Int128, "category": levels, "empty": pl.Float32, "duration": pl.Duration("ns"),
        "zone": pl.Datetime("ns", "Asia/Tokyo"),
    }  # fmt: skip
    return pl.DataFrame([pl.Series(name, cells, dtype=types.get(name)) for name, cells in lists.items()])


def object_array(lists):
    return np.array([list(cells) for cells in lists.values()], dtype=object).T


FRAMES = [pandas_objects, pandas_typed, pandas_nullable, pandas_arrow, polars_typed, polars_others]


@pytest.mark.parametrize("make", [*FRAMES, object_array])
@pytest.mark.parametrize("seed", range(4))
def test_same_as_the_slow_way(make, seed):
    rng = np.random.default_rng(seed)
    training = random_lists(rng, 30, missing=[0.0, 0.2, 0.6, 0.9][seed])
    others = random_lists(rng, 40)
    columns = Columns.fit(make(training))
    names, features = slow_encode(training, training)
    if make is not object_array:
        assert columns.feature_names == names
        assert [column.name for column in columns.columns] == list(training)
    np.testing.assert_allclose(columns.encode(make(training)), features, rtol=1e-13, atol=1e-13)
    # Columns without any value are numbers, and take nothing else later.
    others |= {name: [None] * 40 for name, cells in training.items() if all(cell is None for cell in cells)}
    np.testing.assert_allclose(columns.encode(make(others)), slow_encode(training, others)[1], rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("fitted", [*FRAMES, object_array])
@pytest.mark.parametrize("given", [*FRAMES, object_array])
def test_libraries_may_change_between_training_and_prediction(fitted, given):
    rng = np.random.default_rng(7)
    training, others = random_lists(rng, 50), random_lists(rng, 20)
    expected = slow_encode(training, others)[1]
    np.testing.assert_allclose(Columns.fit(fitted(training)).encode(given(others)), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("make", FRAMES)
def test_chosen_categories_same_as_the_slow_way(make):
    rng = np.random.default_rng(3)
    chosen = ["small", "bool", "int", "text"]
    training, others = random_lists(rng, 60), random_lists(rng, 30)
    columns = Columns.fit(make(training), categorical_features=chosen)
    for rows in (training, others):
        np.testing.assert_allclose(columns.encode(make(rows)), slow_encode(training, rows, chosen)[1], rtol=1e-13)
    by_name = dict(zip(columns.feature_names, columns.levels, strict=True))
    for name in chosen:
        assert by_name[name] == tuple(slow_codes(training[name], [])[0])
    places = [list(training).index(name) for name in chosen]
    assert Columns.fit(make(training), categorical_features=places) == columns
    mask = [name in chosen for name in training]
    assert Columns.fit(make(training), categorical_features=np.array(mask)) == columns


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize("seed", range(3))
def test_merged_parts_are_the_whole(make, seed):
    rng = np.random.default_rng(seed)
    lists = random_lists(rng, 60, missing=0.5)
    parts = [{name: cells[start : start + 12] for name, cells in lists.items()} for start in range(0, 60, 12)]
    for choice in ("from_dtype", None, ["small", "bool"]):
        merged = Columns.merge([Columns.fit(make(part), choice) for part in parts])
        assert merged == Columns.fit(make(lists), choice)


@pytest.mark.parametrize("make", FRAMES)
def test_json_and_pickle_round_trip(make):
    lists = random_lists(np.random.default_rng(1), 40)
    columns = Columns.fit(make(lists), ["small", "bool", "float", "int"])
    columns.encode(make(lists))
    text = json.dumps(columns.to_json(), allow_nan=False)
    assert Columns.from_json(json.loads(text)) == columns
    copy = pickle.loads(pickle.dumps(columns))
    assert copy == columns
    assert hash(copy) == hash(columns)
    np.testing.assert_array_equal(copy.encode(make(lists)), columns.encode(make(lists)))
    assert len(pickle.dumps(columns)) == len(pickle.dumps(Columns.fit(make(lists), ["small", "bool", "float", "int"])))


def test_description_per_feature():
    pd = pytest.importorskip("pandas")
    when = pd.to_datetime(["2024-01-31 06:00", "2024-02-01 18:30"])
    columns = Columns.fit(pd.DataFrame({"c": ["u", "v"], "when": when, "n": [1, 2]}))
    assert columns.feature_names == ("c", "when (time)", "when (month)", "when (weekday)", "when (hour)", "n")
    assert columns.is_category.tolist() == [True, False, False, False, False, False]
    assert columns.levels == [("u", "v"), None, None, None, None, None]
    assert columns.sources.tolist() == [0, 1, 1, 1, 1, 2]
    assert (columns.n_columns, columns.n_features) == (3, 6)
    with pytest.raises(AttributeError):
        columns.columns = ()


# --- when columns are needed at all -----------------------------------------------------------------------------------


def test_frames_are_recognised():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")

    class Special(pd.DataFrame):
        pass

    class DataFrame:
        pass

    assert is_frame(pd.DataFrame())
    assert is_frame(Special())
    assert is_frame(pl.DataFrame())
    for X in (pl.LazyFrame(), pd.Series([1]), pl.Series([1]), np.zeros((1, 1)), [[1]], DataFrame(), None):
        assert not is_frame(X)


def test_plain_pandas_frames_need_nothing():
    pd = pytest.importorskip("pandas")
    plain = [[1.5, NAN], [1, 2], np.array([1, 2], "uint8"), np.array([1, 2], "f4"), pd.array([1, 2], "Int64")]
    frame = pd.DataFrame(dict(enumerate(plain)))
    assert not needs_encoding(frame, "from_dtype")
    assert not needs_encoding(frame, None)
    assert not needs_encoding(frame, [])
    assert not needs_encoding(frame, [False] * 5)
    assert needs_encoding(frame, [0])
    assert needs_encoding(frame, [False, True, False, False, False])
    assert not needs_encoding(pd.DataFrame({"a": pd.array([0.0, 1.0], dtype="Sparse[float]")}), "from_dtype")


@pytest.mark.parametrize(
    "values",
    [
        ["a", "b"], [1, "b"], [True, False], [1, None, "Int64"], [1.5, None, "Float64"], [True, None, "boolean"],
        ["2024", "2025", "datetime64[ns]"], ["1h", "2h", "timedelta64[ns]"], [1, 2, "category"], [1, 2, object],
        ["2024", "2025", "period[Y]"],
    ],
)  # fmt: skip
def test_other_pandas_columns_need_encoding(values):
    pd = pytest.importorskip("pandas")
    *values, dtype = values if len(values) == 3 else (*values, None)
    if dtype == "period[Y]":
        values = pd.PeriodIndex(values, freq="Y")
        dtype = None
    frame = pd.DataFrame({"n": [1.5, 2.5], "a": pd.Series(values, dtype=dtype)})
    assert needs_encoding(frame, "from_dtype")
    assert needs_encoding(frame, None)


def test_polars_frames_that_need_encoding():
    pl = pytest.importorskip("polars")
    assert not needs_encoding(pl.DataFrame({"a": [1, 2], "b": [1.5, NAN]}), "from_dtype")
    other = [
        [1, None], [1.5, None], [True, False], ["a", "b"], [DAY, DAY], [EPOCH, EPOCH], [Decimal(1), Decimal(2)],
    ]  # fmt: skip
    for values in other:
        assert needs_encoding(pl.DataFrame({"a": values}), "from_dtype"), values


def test_arrays_need_encoding_only_for_named_columns():
    X = np.zeros((3, 2))
    for choice in ("from_dtype", None, [], np.array([], dtype=int), [False, False]):
        assert not needs_encoding(X, choice)
    for choice in ([0], [True, False], ["x0"], "typo", 3):
        assert needs_encoding(X, choice)


@pytest.mark.slow
def test_importing_needs_neither_library():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['pandas', 'polars']));"
        "import numpy as np; from polytrain.columns import Columns, is_frame, needs_encoding;"
        "X = np.array([[1.0, 5.0], [2.0, 3.0]]); assert needs_encoding(X, [1]) and not is_frame(X);"
        "assert Columns.fit(X, [1]).encode(X).tolist() == [[1, 1], [2, 0]]"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# --- arrays -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "u1"])
def test_array_with_listed_categories(dtype):
    X = np.array([[3, 1], [7, 2], [3, 3]], dtype=dtype)
    columns = Columns.fit(X, [0])
    assert columns.columns == (CategoryColumn("x0", (3, 7)), NumberColumn("x1"))
    new = np.array([[7.0, 0.5], [NAN, NAN], [4.0, np.inf]])
    np.testing.assert_array_equal(columns.encode(new), [[1, 0.5], [NAN, NAN], [-1, np.inf]])


def test_list_of_rows_keeps_its_types():
    rows = [[1, "a"], [2.5, None], [None, "b"]]
    columns = Columns.fit(rows)
    assert columns.columns == (NumberColumn("x0"), CategoryColumn("x1", ("a", "b")))
    np.testing.assert_array_equal(columns.encode(rows), [[1, 0], [2.5, NAN], [NAN, 1]])


@pytest.mark.parametrize("kind", ["U", "S"])
def test_array_of_text(kind):
    columns = Columns.fit(np.array([["b"], ["a"]], dtype=kind))
    assert columns.levels == [("a", "b")]
    assert columns.encode(np.array([["a"], ["c"]], dtype=kind)).tolist() == [[0], [-1]]


def test_empty_tables():
    assert Columns.fit(np.zeros((0, 2))).columns == (NumberColumn("x0", True), NumberColumn("x1", True))
    columns = Columns.fit(np.array([["a", 1]], dtype=object))
    assert columns.encode(np.zeros((0, 2), dtype=object)).shape == (0, 2)
    assert Columns.fit(np.zeros((3, 0))).encode(np.zeros((3, 0))).shape == (3, 0)


# --- levels -----------------------------------------------------------------------------------------------------------


def encode_objects(columns, values):
    return columns.encode(np.array([values], dtype=object).T)[:, 0].tolist()


def test_numbers_are_the_same_level_whatever_their_type():
    columns = Columns.fit(np.array([[1, 2, 5]]).T, [0])
    same = [1.0, True, np.int8(1), np.float32(1), Decimal(1), Fraction(1), np.True_]
    for value in same:
        assert encode_objects(columns, [value]) == [0]
    assert encode_objects(columns, ["1", 1, b"1"]) == [-1, 0, -1]
    columns = Columns.fit(np.array([[True, False]]).T, [0])
    assert columns.levels == [(False, True)]
    assert columns.encode(np.array([[1.0, 0.0, 2.0]]).T).ravel().tolist() == [1, 0, -1]


def test_text_is_not_a_number():
    columns = Columns.fit(np.array([["1", "2"]], dtype=object).T)
    assert columns.levels == [("1", "2")]
    assert encode_objects(columns, ["1", "2", "3"]) == [0, 1, -1]
    assert encode_objects(columns, [1, 2]) == [-1, -1]


def test_large_integers_are_told_apart():
    values = np.array([[2**60, 2**60 + 1, 2**60 + 2]]).T
    columns = Columns.fit(values, [0])
    assert columns.encode(values).ravel().tolist() == [0, 1, 2]
    assert columns.encode(values + 1).ravel().tolist() == [1, 2, -1]


def test_fractions_are_the_same_in_single_precision():
    double = np.array([[0.1, 0.5, 3.0]]).T
    single = double.astype(np.float32)
    for training, rows in [(double, single), (single, double)]:
        assert Columns.fit(training, [0]).encode(rows).ravel().tolist() == [0, 1, 2]
    close = np.array([[0.1, 0.1 + 1e-12]]).T
    columns = Columns.fit(close, [0])
    assert columns.encode(close).ravel().tolist() == [0, 1]
    assert columns.encode(close + 1e-13).ravel().tolist() == [-1, -1]
    assert Columns.fit(double, [0]).encode(np.array([[3.0 + 1e-12, 1e-60]]).T).ravel().tolist() == [-1, -1]


def test_infinite_and_extreme_levels():
    values = np.array([[np.inf, -np.inf, 0.0, 1e300, -0.0, NAN]]).T
    columns = Columns.fit(values, [0])
    assert columns.levels == [(-np.inf, 0.0, 1e300, np.inf)]
    np.testing.assert_array_equal(columns.encode(values).ravel(), [3, 0, 1, 2, 1, NAN])
    text = json.dumps(columns.to_json(), allow_nan=False)
    assert Columns.from_json(json.loads(text)) == columns


def test_mixed_objects_stand_for_their_text():
    when = datetime.datetime(2024, 5, 1)
    columns = Columns.fit(np.array([["a", 1, 2.5, True, None, when, 1.0, "1"]], dtype=object).T)
    assert columns.columns == (CategoryColumn("x0", ("1", "2.5", "2024-05-01", "True", "a"), as_text=True),)
    # Which values come together does not matter.
    for value, code in [(1, 0), (1.0, 0), (True, 3), ("True", 3), (when, 2), (when.date(), 2), (2.5, 1), (7, -1)]:
        assert encode_objects(columns, [value]) == [code]
        assert encode_objects(columns, [1, value, True, "a"]) == [0, code, 3, 4]
    assert columns.encode(np.array([[1.0, 2.5, 9.0]], dtype=np.float32).T).ravel().tolist() == [0, 1, -1]


def test_other_objects_stand_for_their_text():
    columns = Columns.fit([[(1, 2)], [frozenset()], [None]])
    assert columns.levels == [("(1, 2)", "frozenset()")]
    np.testing.assert_array_equal(columns.encode([[frozenset()], [(3,)], [(1, 2)]]).ravel(), [1, -1, 0])


def test_very_many_levels():
    values = np.array([f"id {k}" for k in range(100_000)], dtype=object)[:, None]
    columns = Columns.fit(values)
    assert len(columns.levels[0]) == 100_000
    codes = columns.encode(values[::-1]).ravel()
    assert sorted(codes.tolist()) == list(range(100_000))
    assert columns.levels[0][int(codes[0])] == "id 99999"
    assert Columns.merge([columns, columns]) == columns


def test_pandas_categories():
    pd = pytest.importorskip("pandas")
    values = pd.Categorical(["b", None, "a", "b"], categories=["c", "b", "a"], ordered=True)
    frame = pd.DataFrame({"a": values})
    columns = Columns.fit(frame)
    assert columns.levels == [("a", "b")]
    np.testing.assert_array_equal(columns.encode(frame).ravel(), [1, NAN, 0, 1])
    np.testing.assert_array_equal(columns.encode(pd.DataFrame({"a": ["c", "a"]})).ravel(), [-1, 0])
    mixed = Columns.fit(pd.DataFrame({"a": pd.Series([2, "x", 1.5], dtype="category")}))
    assert mixed.levels == [(1.5, 2, "x")]


@pytest.mark.parametrize("values", [[3, 1, None, 3], [True, False, True], [2.5, None, 1.5]])
def test_pandas_categories_of_numbers_are_numbers_unless_chosen(values):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.Series(values, dtype="category"), "b": 1.0})
    known = {value for value in values if value is not None}
    assert Columns.fit(frame).columns[0] == CategoryColumn("a", tuple(sorted(known)))
    for choice in (None, ["b"]):
        columns = Columns.fit(frame, choice)
        assert columns.columns[0] == NumberColumn("a")
        np.testing.assert_array_equal(columns.encode(frame)[:, 0], [slow_number(value) for value in values])


def test_pandas_categories_of_other_things():
    pd = pytest.importorskip("pandas")
    cut = pd.cut(pd.Series([1.0, 5.0, NAN, 9.0]), [0, 4, 8, 12])
    assert Columns.fit(pd.DataFrame({"a": cut})).levels == [("(0, 4]", "(4, 8]", "(8, 12]")]
    dates = pd.Series(pd.to_datetime(["2024-05-02", None, "2024-05-01"])).astype("category")
    columns = Columns.fit(pd.DataFrame({"a": dates}))
    assert columns.levels == [("2024-05-01", "2024-05-02")]
    plain = pd.DataFrame({"a": [datetime.date(2024, 5, 2), datetime.date(2024, 5, 3)]})
    assert columns.encode(plain).ravel().tolist() == [1, -1]
    assert isinstance(Columns.fit(pd.DataFrame({"a": dates}), None).columns[0], DateColumn)


def test_text_is_categories_whatever_is_chosen():
    frames = [make({"text": ["b", "a", None], "n": [1.0, 2.0, 3.0]}) for make in (pandas_objects, polars_others)]
    for frame in frames:
        for choice in (None, [], ["n"], "from_dtype"):
            assert Columns.fit(frame, choice).columns[0] == CategoryColumn("text", ("a", "b"))


# --- missing values ---------------------------------------------------------------------------------------------------


def test_all_things_that_are_missing():
    pd = pytest.importorskip("pandas")
    gone = [None, NAN, np.float32("nan"), pd.NA, pd.NaT, Decimal("nan"), np.datetime64("NaT"), np.timedelta64("NaT")]
    for present in (["a", "b"], [1, 2.5], [EPOCH, EPOCH + 40 * DAY], ["a", 1]):
        values = np.empty((len(gone) + 2, 1), dtype=object)
        values[:, 0] = [*gone, *present]
        for frame in (values, pd.DataFrame(values, columns=["a"], dtype=object)):
            encoded = Columns.fit(frame).encode(frame)
            assert np.isnan(encoded[:-2]).all()
            assert not np.isnan(encoded[-2:]).any()


@pytest.mark.parametrize("make", FRAMES)
@pytest.mark.parametrize("choice", ["from_dtype", None, "all"])
def test_columns_without_values_are_numbers(make, choice):
    lists = {name: [None, None] for name in random_lists(np.random.default_rng(0), 1)}
    columns = Columns.fit(make(lists), list(lists) if choice == "all" else choice)
    assert columns.columns == tuple(NumberColumn(name, empty=True) for name in lists)
    assert np.isnan(columns.encode(make(lists))).all()
    assert columns.encode(np.full((1, len(lists)), 2.5)).tolist() == [[2.5] * len(lists)]


# --- numbers and dates ------------------------------------------------------------------------------------------------


def test_odd_numbers():
    values = [[10**400], [-(10**400)], [Fraction(1, 4)], [Decimal("1e400")], [np.float16(0.5)], [datetime.time(6, 30)]]
    expected = [np.inf, -np.inf, 0.25, np.inf, 0.5, 6.5]
    for value, number in zip(values, expected, strict=True):
        assert Columns.fit([value]).encode([value]).tolist() == [[number]]


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
def test_dates_of_all_resolutions(unit):
    dates = np.array([["1969-12-30T23:30"], ["NaT"], ["2001-09-09T01:46"]], dtype="datetime64[m]").astype(f"M8[{unit}]")
    columns = Columns.fit(dates)
    plain = [None if np.isnat(date) else date.astype("M8[us]").item() for date in dates.ravel()]
    kept, features = slow_dates(plain, plain)
    assert columns.columns[0].parts == tuple(kept)
    np.testing.assert_allclose(columns.encode(dates), np.array(features).T, rtol=1e-14)


def test_first_and_last_days_of_nanoseconds():
    dates = np.array([["1677-09-22T12:00"], ["2262-04-11T06:00"]], dtype="datetime64[ns]")
    assert Columns.fit(dates).encode(dates).tolist() == [[-106750.5, 9, 2, 12], [106751.25, 4, 4, 6]]


def test_dates_with_a_time_zone_are_local():
    pd = pytest.importorskip("pandas")
    local = pd.Series(pd.to_datetime(["2024-03-31 07:30", "2024-07-01 23:30"]))  # summer time begins before the first
    columns = Columns.fit(local.to_frame("a"))
    expected = columns.encode(local.to_frame("a"))
    assert expected[:, 3].tolist() == [7.5, 23.5]
    zoned = local.dt.tz_localize("Europe/Berlin")
    texts = zoned.map(lambda moment: moment.isoformat())
    assert texts[0] == "2024-03-31T07:30:00+02:00"
    for other in (zoned, zoned.astype(object), texts, local.dt.tz_localize("America/Lima"), zoned.astype("category")):
        np.testing.assert_array_equal(columns.encode(other.to_frame("a")), expected)
    assert Columns.fit(texts.to_frame("a")) == Columns.fit(zoned.to_frame("a")) == columns
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"a": local.to_numpy()}).select(polars.col("a").dt.replace_time_zone("Europe/Berlin"))
    np.testing.assert_array_equal(columns.encode(frame), expected)


def frame_of(library, **lists):
    return pytest.importorskip(library).DataFrame(lists)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("texts", "pattern"),
    [
        (["2024-03-31", "2024-04-01 12:00", None, " 2024-05-02 ", "NA", ""], "iso"),
        (["31.03.2024", "1.4.2024 12:00", None, "2.5.2024", "?", "NA"], "%d.%m.%Y"),
    ],
)
def test_text_of_dates_is_dates(library, texts, pattern):
    columns = Columns.fit(frame_of(library, when=texts))
    (column,) = columns.columns
    assert column == DateColumn("when", column.ranges, pattern)
    assert column.parts == ("time", "month", "weekday", "hour")
    dates = np.array(["2024-03-31", "2024-04-01T12", "NaT", "2024-05-02", "NaT", "NaT"], dtype="datetime64[h]")
    np.testing.assert_array_equal(columns.encode(frame_of(library, when=texts)), columns.encode(dates[:, None]))
    assert np.isfinite(columns.encode(dates[:2, None])).all()
    assert Columns.from_json(json.loads(json.dumps(columns.to_json()))) == columns
    with pytest.raises(ValueError, match=r"column 'when' held dates in training, but now holds 'soon'\. Give dates"):
        columns.encode(frame_of(library, when=[texts[0], "soon"]))


def test_dates_in_text_that_is_declared_as_categories_stay_categories():
    frame = frame_of("pandas", when=["2024-03-31", "2024-04-01"])
    for columns in (Columns.fit(frame, ["when"]), Columns.fit(frame.astype("category"))):
        assert columns.levels == [("2024-03-31", "2024-04-01")]
    assert Columns.fit(frame.astype("category"), None).columns[0].kind == "date"


def test_dates_whose_order_is_a_guess_are_warned_of():
    frame = frame_of("pandas", when=["03/04/2024", "05/06/2024"])
    with pytest.warns(UserWarning, match=r"column 'when' is read as dates, such as '12/31/2024' \(another form would"):
        columns = Columns.fit(frame)
    assert columns.encode(frame)[:, 1].tolist() == [3, 5]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (
            ["1,234", "5,600", "120"],
            "looks like numbers, such as '1,234', and is taken as 3 categories. Convert it to numbers",
        ),
        (["12.5", "13", "14", "few"], "looks like numbers, such as '12.5', but also 'few', and is taken as 4 cat"),
        (["2024-03-31", "2024-04-01", "later"], "looks like dates, such as '2024-03-31', but also 'later', and is"),
    ],
)
def test_text_that_looks_like_values_is_warned_of(texts, message):
    frame = frame_of("pandas", size=texts)
    with pytest.warns(UserWarning, match=f"column 'size' holds text that {message}"):
        columns = Columns.fit(frame)
    assert columns.levels == [tuple(sorted(texts))]
    assert Columns.fit(frame, ["size"]) == columns  # who names the column is not warned


def test_parts_of_a_text_column_decide_together():
    def of_texts(*texts):
        return Columns.fit_part(frame_of("pandas", when=list(texts)))

    both = Columns.merge([of_texts("03/04/2024", "05/06/2024"), of_texts("31/12/2024")])
    assert both.columns[0].pattern == "%d/%m/%Y"
    assert both.columns[0].ranges[0] == (4.0, 12.0)
    assert Columns.merge([of_texts("2024-12-31"), of_texts("no", "yes")]).levels == [("2024-12-31", "no", "yes")]
    mixed = Columns.fit_part(np.array([["no"], [1]], dtype=object))
    texts = Columns.fit_part(np.array([["yes"]], dtype=object))
    assert Columns.merge([mixed, texts]).columns == (CategoryColumn("x0", ("1", "no", "yes"), as_text=True),)


def test_periods_are_dates():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": pd.period_range("2024-01", periods=3, freq="M")})
    columns = Columns.fit(frame)
    assert columns.columns[0].parts == ("time", "month", "weekday")
    assert columns.encode(frame)[:, 1].tolist() == [1, 2, 3]


def test_parts_that_do_not_vary_are_left_out():
    week = np.array([["2024-01-01"], ["2024-01-08"]], dtype="datetime64[D]")
    assert Columns.fit(week).feature_names == ("x0 (time)",)
    parts = [Columns.fit(week), Columns.fit(week + np.timedelta64(28, "D"))]
    assert Columns.merge(parts).feature_names == ("x0 (time)", "x0 (month)")  # two months, always on Mondays


# --- names ------------------------------------------------------------------------------------------------------------


def test_names_of_columns():
    pd = pytest.importorskip("pandas")
    twice = pd.DataFrame([[1.0, "u"], [2.0, "v"]], columns=["a", "a"])
    assert Columns.fit(twice).columns == (NumberColumn("a"), CategoryColumn("a", ("u", "v")))
    numbered = pd.DataFrame([[1.0, "u"], [2.0, "v"]])
    assert Columns.fit(numbered).feature_names == ("x0", "x1")
    assert Columns.fit(numbered, [0]).columns[0] == CategoryColumn("x0", (1, 2))


# --- errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        (["colour", "size"], "the column name 'colour', which X does not have. Its columns are 'a', 'b'."),
        ("a", r"must not be 'a'.*For a single column write \['a'\]"),
        ("typo", "must not be 'typo'. Give 'from_dtype', None"),
        (3, "must not be 3. Give"),
        ([0, 2], "the column number 2, but X has 2 columns. Give numbers from 0 to 1"),
        ([-1], "the column number -1"),
        ([True], "has 1 of True and False, but X has 2 columns. Give one for each"),
        (np.array([True, False, True]), "has 3 of True and False"),
        ([True, 1], "has the entry True, which is not a column"),
        ([1.5], "has the entry 1.5, which is not a column"),
    ],
)
def test_wrong_choices(choice, message):
    for make in (pandas_objects, polars_others):
        with pytest.raises(ValueError, match=message):
            Columns.fit(make({"a": [1.0], "b": [2.0]}), choice)


def test_names_need_names():
    with pytest.raises(ValueError, match="the column name 'a', but the columns of X have no names of text"):
        Columns.fit(np.zeros((2, 2)), ["a"])


@pytest.mark.parametrize("make", [pandas_objects, polars_others, object_array])
@pytest.mark.parametrize("values", [[None, "3.5", "x"], ["3.5"]])
def test_text_in_the_place_of_numbers(make, values):
    columns = Columns.fit(make({"a": [1.5, 2.5]}))
    with pytest.raises(ValueError, match=r"column '(a|x0)' held numbers in training, but now holds '3.5'\. Give num"):
        columns.encode(make({"a": values}))


def test_first_wrong_value_is_shown_and_cut():
    pd = pytest.importorskip("pandas")
    columns = Columns.fit(pd.DataFrame({"a": [1.5, 2.5]}))
    shown = pd.Categorical(["z" * 100, "a"], categories=["a", "z" * 100])
    with pytest.raises(ValueError, match=f"now holds 'z{{56}}{'[.]' * 3}[.] Give"):
        columns.encode(pd.DataFrame({"a": shown}))
    with pytest.raises(ValueError, match="now holds 'b'"):
        columns.encode(pd.DataFrame({"a": pd.Series([1, None, "b", "a"], dtype=object)}))


def test_other_kinds_than_in_training():
    numbers, dates = np.array([[1.5]]), np.array([["2024-05-01"], ["NaT"]], dtype="datetime64[D]")
    with pytest.raises(ValueError, match="column 'x0' held numbers in training, but now holds '2024-05-01'"):
        Columns.fit(numbers).encode(dates[::-1])
    with pytest.raises(ValueError, match=r"column 'x0' held dates in training, but now holds 1.5\. Give dates"):
        Columns.fit(dates).encode(np.array([[NAN], [1.5]]))
    with pytest.raises(ValueError, match=r"column 'x0' held dates in training, but now holds '01\.05\.2024'"):
        Columns.fit(dates).encode([["01.05.2024"]])
    np.testing.assert_array_equal(Columns.fit(dates).encode([["2024-05-01"]]), Columns.fit(dates).encode(dates[:1]))
    assert np.isnan(Columns.fit(numbers).encode(dates[1:])).all()
    assert np.isnan(Columns.fit(dates).encode(np.array([[NAN]]))).all()


@pytest.mark.parametrize("value", [[1, 2], {"a": 1}, np.zeros(2)], ids=["list", "dict", "array"])
def test_cells_with_several_values(value):
    cells = np.empty((2, 1), dtype=object)
    cells[1, 0] = value
    with pytest.raises(ValueError, match=r"column 'x0' holds .* A cell must hold a single value"):
        Columns.fit(cells)
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match=r"column 'a' holds .* A cell must hold a single value"):
        Columns.fit(pd.DataFrame({"a": cells[:, 0]}))
    with pytest.raises(ValueError, match=r"column 'x0' holds .* A cell must hold a single value"):
        Columns.fit([["a"]]).encode(cells)


def test_polars_cells_with_several_values():
    pl = pytest.importorskip("polars")
    for values in ([[1, 2], [3]], [{"a": 1}, {"a": 2}]):
        with pytest.raises(ValueError, match=r"column 'a' holds .* A cell must hold a single value"):
            Columns.fit(pl.DataFrame({"a": values}))


def test_complex_numbers():
    for X in (np.array([[1j]]), [[1], [2j]]):
        with pytest.raises(ValueError, match=r"column 'x0' holds .*\dj"):
            Columns.fit(X)


def test_wrong_shapes():
    sparse = pytest.importorskip("scipy.sparse").csr_array(np.eye(2))
    for X in (np.zeros(3), np.zeros((2, 2, 2)), 3, sparse):
        with pytest.raises(ValueError, match="X must be a frame of pandas or polars, or an array with two dimensions"):
            Columns.fit(X)
    with pytest.raises(ValueError, match="X has 3 columns, but had 2 in training"):
        Columns.fit(np.zeros((2, 2))).encode(np.zeros((2, 3)))


def test_parts_that_do_not_fit_together():
    number, text = Columns((NumberColumn("a"),)), Columns((CategoryColumn("a", ("u",)),))
    with pytest.raises(ValueError, match="column 'a' is a number in some rows and a category in others"):
        Columns.merge([number, text])
    with pytest.raises(ValueError, match="column 0 has the name 'a' in some rows and 'b' in others"):
        Columns.merge([number, Columns((NumberColumn("b"),))])
    with pytest.raises(ValueError, match="the same columns, got \\[1, 2\\] of them"):
        Columns.merge([number, Columns((NumberColumn("a"), NumberColumn("b")))])
    with pytest.raises(ValueError, match="nothing to merge"):
        Columns.merge([])
    empty = Columns((NumberColumn("a", empty=True),))
    assert Columns.merge([empty, text, empty]) == text
    assert Columns.merge([empty, number]) == number
    assert Columns.merge([empty, empty]) == empty


def test_mixed_parts_are_merged_as_text():
    parts = [Columns.fit([["a"], ["b"]]), Columns.fit([[1], ["a"]])]
    assert Columns.merge(parts) == Columns.fit([["a"], ["b"], [1], ["a"]])


# --- files ------------------------------------------------------------------------------------------------------------

NUMBER = {"kind": "number", "name": "a", "empty": False}
CATEGORY = {"kind": "category", "name": "a", "levels": [1, 2.5, "u"], "as_text": False}
DATE = {"kind": "date", "name": "a", "ranges": [[1, 1], [0, 0], [0.5, 23]], "pattern": "iso"}


def test_documents_that_are_right():
    for entry in (NUMBER, CATEGORY, DATE, DATE | {"pattern": "%d.%m.%Y"}):
        assert Columns.from_json([entry]).to_json() == [entry]
    assert Columns.from_json([]) == Columns(())


@pytest.mark.parametrize("entry", [None, 3, [], {}])
def test_what_is_no_column(entry):
    with pytest.raises(ValueError, match="must be a dict"):
        Columns.from_json([entry])


@pytest.mark.parametrize(
    ("entry", "changes", "message"),
    [
        (NUMBER, {"kind": "other"}, "kind"),
        (NUMBER, {"kind": ["number"]}, "kind"),
        (NUMBER, {"name": 3}, "name"),
        (NUMBER, {"empty": 0}, "empty of column 'a' is 0"),
        (NUMBER, {"more": 1}, "entries"),
        (CATEGORY, {"levels": []}, "text or numbers"),
        (CATEGORY, {"levels": "abc"}, "text or numbers"),
        (CATEGORY, {"levels": [None]}, "text or numbers"),
        (CATEGORY, {"levels": [[1]]}, "text or numbers"),
        (CATEGORY, {"levels": [NAN]}, "text or numbers"),
        (CATEGORY, {"levels": [{"number": "nan"}]}, "text or numbers"),
        (CATEGORY, {"levels": [{"number": 3}]}, "text or numbers"),
        (CATEGORY, {"levels": [2, 1]}, "in order"),
        (CATEGORY, {"levels": ["a", 1]}, "in order"),
        (CATEGORY, {"levels": [1, 1.0]}, "differ"),
        (CATEGORY, {"levels": [1, True]}, "differ"),
        (CATEGORY, {"as_text": True}, "must be text"),
        (CATEGORY, {"as_text": 1}, "as_text of column 'a' is 1"),
        (DATE, {"ranges": [[1, 1]]}, "ranges"),
        (DATE, {"ranges": [[1, 1], [0, 0], [5, 3]]}, "ranges"),
        (DATE, {"ranges": [[1, 1], [0, 0], [0, NAN]]}, "ranges"),
        (DATE, {"ranges": [[1, 1], [0, 0], [0, "1"]]}, "ranges"),
        (DATE, {"ranges": []}, "ranges"),
        (DATE, {"ranges": 3}, "ranges"),
        (DATE, {"pattern": "%H"}, "pattern"),
        (DATE, {"pattern": 3}, "pattern"),
    ],
)
def test_documents_that_are_wrong(entry, changes, message):
    with pytest.raises(ValueError, match=message):
        Columns.from_json([entry | changes])
    for key in entry:
        with pytest.raises(ValueError, match=r"must|needs"):
            Columns.from_json([{name: value for name, value in entry.items() if name != key}])


# --- small things -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (3, "3"), (3.0, "3"), (np.float32(0.1), "0.1"), (Decimal("2.50"), "2.5"), (np.int8(3), "3"), (True, "True"),
        (np.False_, "False"), (1e300, "1e+300"), (-np.inf, "-inf"), (b"\xff", "\\xff"), ("x", "x"),
        (datetime.date(2024, 5, 1), "2024-05-01"), (datetime.datetime(2024, 5, 1, 6, 30), "2024-05-01 06:30:00"),
        (datetime.datetime(2024, 5, 1, 2, tzinfo=datetime.timezone(2 * DAY / 24)), "2024-05-01 02:00:00"),
        (np.datetime64("2024-05-01T06:30:00.5"), "2024-05-01 06:30:00.500000"),
    ],
)  # fmt: skip
def test_text_of_values(value, text):
    assert text_of(value) == text


def test_cells_do_not_depend_on_how_they_are_given():
    values = ["b", None, "a", "b"]
    one = Cells.of_objects("a", values)
    other = Cells.of_objects("a", ["a", "b"]).take(np.array([1, -1, 0, 1]))
    column = CategoryColumn("a", ("a", "b"))
    np.testing.assert_array_equal(column.encode(one), column.encode(other))
    assert one.kind == other.kind == "text"
