"""What is learned from a table is applied to other tables: against a slow reference, and against mistakes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polytrain import TensorTrainClassifier
from polytrain.tables import (
    Block,
    CategoryColumn,
    NumberColumn,
    Preparation,
    TableError,
    TableModel,
    TableOptions,
    load_table_model,
    open_table,
    read_training_rows,
)
from polytrain.tables.preparation import find_column

GIVEN = {"rank": 2, "alpha": 1e-3, "max_sweeps": 1, "random_state": 0}


def learn(path, text, **options):
    path.write_text(text)
    header = options.pop("header", "auto")
    with open_table(path, header=header) as table:
        return read_training_rows(table, TableOptions(**{"target": "-1", **options}))


def refused(tmp_path, text, message, **options):
    with pytest.raises(TableError, match=message):
        learn(tmp_path / "a.csv", text, **options)


def reference(rows, kinds):
    """One cell at a time: numbers as they are, places of categories in the alphabet, NaN for missing cells."""
    features = []
    for column, kind in zip(zip(*rows, strict=True), kinds, strict=True):
        known = sorted({cell for cell in column if cell not in ("", "?")})
        features.append(
            [
                np.nan if cell in ("", "?") else float(cell) if kind == "number" else float(known.index(cell))
                for cell in column
            ]
        )
    return np.array(features).T


def one_hot_reference(rows, fill, categories):
    """What models of older files take: a number that is filled, a mark, one 0 or 1 per category, a mark."""
    gone = ("", "?")
    return [
        [
            fill if x in gone else float(x),
            float(x in gone),
            *(float(c == name) for name in categories),
            float(c in gone),
        ]
        for x, c in rows
    ]


number = st.sampled_from(["1", "2.5", "-3", "1e2", "7"])
cells = st.lists(st.tuples(number | st.just("?"), st.sampled_from(["a", "b", "c", "?", ""])), min_size=1, max_size=30)


@settings(max_examples=60, deadline=None)
@given(cells)
def test_features_equal_the_reference(tmp_path_factory, drawn):
    rows = [("1", "a"), ("2", "b"), *drawn]
    text = "".join(f"{x},{c},{'yes' if k % 2 else 'no'}\n" for k, (x, c) in enumerate(rows))
    path = tmp_path_factory.mktemp("tables") / "a.csv"
    learned = learn(path, text)
    expected = reference(rows, ["number", "category"])
    np.testing.assert_array_equal(learned.X, expected)
    assert learned.X.shape[1] == len(learned.preparation.feature_names)
    # Applied to its own table, in small blocks and without the target, the preparation gives the same.
    path.write_text("".join(f"{x},{c}\n" for x, c in rows))
    with open_table(path, header="no") as table:
        indexes = learned.preparation.match(table)
        parts = [learned.preparation.encode(block, indexes, table.label) for block in table.blocks(3)]
    np.testing.assert_array_equal(np.concatenate(parts), expected)


@settings(max_examples=30, deadline=None)
@given(cells)
def test_one_hot_features_of_older_models(drawn):
    columns = (NumberColumn("x", 0, 2.25, True), CategoryColumn("c", 1, ("a", "b", "c"), True, coded=False))
    block = Block(list(map(list, zip(*drawn, strict=True))), range(len(drawn)))
    found = Preparation(columns, None, True, 2, ("?",)).encode(block, [0, 1], "a.csv")
    np.testing.assert_array_equal(found, one_hot_reference(drawn, 2.25, "abc"))
    bare = (NumberColumn("x", 0, 2.25), CategoryColumn("c", 1, ("a", "b", "c"), coded=False))
    found = Preparation(bare, None, True, 2, ("?",)).encode(block, [0, 1], "a.csv")
    np.testing.assert_array_equal(found, np.array(one_hot_reference(drawn, 2.25, "abc"))[:, [0, 2, 3, 4]])


def test_kinds_of_targets(tmp_path):
    path = tmp_path / "a.csv"
    assert learn(path, "1,yes\n2,no\n").y.tolist() == ["yes", "no"]
    few = learn(path, "1,0\n2,1\n3,0\n")
    assert (few.is_classification, few.y.dtype) == (True, np.int64)
    assert not learn(path, "1,0.5\n2,1\n").is_classification
    many = "".join(f"{k % 3},{k}\n" for k in range(11))
    assert not learn(path, many).is_classification
    assert learn(path, many, task="classification").is_classification
    assert learn(path, "1,0\n2,1\n3,0\n", task="regression").y.dtype == np.float64
    refused(tmp_path, "1,yes\n2,no\n", "regression needs numbers", task="regression")


def test_rows_without_target_are_left_out(tmp_path):
    rows = learn(tmp_path / "a.csv", "1,yes\n2,?\n3,no\n")
    assert (rows.X[:, 0].tolist(), rows.n_dropped) == ([1.0, 3.0], 1)
    refused(tmp_path, "1,?\n2,\n", "all cells of the target 'column 1' are missing")


def test_columns_by_name_and_position():
    names = ["a", "b", "2"]
    assert [find_column(given, names, 3, "t") for given in ("b", "0", "-1", "-3", "2", "1")] == [1, 0, 2, 0, 2, 1]
    assert find_column("-1", None, 5, "t") == 4
    for wrong in ("c", "3", "-4", "1.0"):
        with pytest.raises(TableError, match=f"t has no column '{wrong}'; it has the columns a, b, 2"):
            find_column(wrong, names, 3, "t")


def test_drop_and_categorical(tmp_path):
    text = "id,size,kind,y\n10,1,4,a\n11,2,5,b\n12,3,4,a\n"
    rows = learn(tmp_path / "a.csv", text, drop=["id"], categorical=["kind"])
    assert rows.preparation.feature_names == ["size", "kind"]
    assert rows.preparation.categories == [1]
    np.testing.assert_array_equal(rows.X, [[1, 0], [2, 1], [3, 0]])
    refused(tmp_path, text, "cannot be dropped", drop=["y"])
    refused(tmp_path, text, "has no column 'idd'", drop=["idd"])


def test_columns_without_information_are_left_out(tmp_path):
    rows = learn(tmp_path / "a.csv", "k,e,t,x,y\n1,?,u,1,a\n1,?,u,2,b\n")
    assert rows.left_out == ("k", "e", "t")
    assert rows.preparation.feature_names == ["x"]
    refused(tmp_path, "1,a\n1,b\n", "no column to learn from")


def test_text_in_a_number_column(tmp_path):
    text = "x,y\n1,a\n2,b\ntwo,a\n4,b\n"
    refused(tmp_path, text, r"line 4: column 'x' holds numbers, but here 'two'.*--missing two.*--categorical 'x'")
    assert learn(tmp_path / "a.csv", text, missing=["two"]).n_missing == 1
    (column,) = learn(tmp_path / "a.csv", text, categorical=["x"]).preparation.columns
    assert column.categories == ("1", "2", "4", "two")
    # More text than numbers: categories, some of which look like numbers.
    mixed = learn(tmp_path / "a.csv", "x,y\n1,a\nu,b\nv,a\n").preparation
    assert isinstance(mixed.columns[0], CategoryColumn)


def test_text_after_many_numbers(tmp_path):
    """Earlier blocks are already numbers; they must not be lost or become categories."""
    text = "".join(f"{k},{'ab'[k % 2]}\n" for k in range(9000)) + "oops,a\n" * 20_000
    refused(tmp_path, text, "line 9001: column 'column 0' holds numbers, but here 'oops'")
    late = "?,a\n" * 9000 + "u,a\nv,b\n"
    rows = learn(tmp_path / "a.csv", late)
    assert rows.preparation.columns[0].categories == ("u", "v")
    assert rows.n_missing == np.isnan(rows.X).sum() == 9000
    assert rows.X[-2:, 0].tolist() == [0.0, 1.0]


def test_too_many_categories(tmp_path):
    text = "".join(f"t{k},{'ab'[k % 2]}\n" for k in range(120))
    refused(tmp_path, text, r"120 different values, more than 100 categories.*--drop 'column 0'")
    assert learn(tmp_path / "a.csv", text, max_categories=120).X.max() == 119


def test_names(tmp_path):
    rows = learn(tmp_path / "a.csv", "1,a\n2,b\n", names=["size", "label"])
    assert rows.preparation.feature_names == ["size"]
    assert rows.preparation.target.name == "label"
    refused(tmp_path, "1,a\n2,b\n", "--names must be 2 different names", names=["size"])
    refused(tmp_path, "x,y\n1,a\n2,b\n", "has a header with names", names=["size", "label"])


@pytest.fixture
def model(tmp_path):
    rows = learn(tmp_path / "train.csv", "size,kind,y\n1,u,a\n2,v,b\n3,u,a\n4,v,b\n")
    estimator = TensorTrainClassifier(basis=["spline", "category"], **GIVEN).fit(rows.X, rows.y)
    return TableModel(estimator, rows.preparation, {})


def blocks(model, tmp_path, text, name="new.csv", header=None, **options):
    (tmp_path / name).write_text(text)
    with model.open(tmp_path / name, header=header) as table:
        return list(model.blocks(table, **options))


def test_columns_are_found_by_name(model, tmp_path):
    (block,) = blocks(model, tmp_path, "extra,kind,size\n9,v,2\n")
    np.testing.assert_array_equal(block.X, [[2.0, 1.0]])
    (same,) = blocks(model, tmp_path, "2,v\n", header="no")
    np.testing.assert_array_equal(same.X, block.X)
    with pytest.raises(TableError, match=r"lacks the column size; it has kind"):
        blocks(model, tmp_path, "kind\nv\n")
    with pytest.raises(TableError, match=r"has 1 columns, but the model was fitted on 3, the target included"):
        blocks(model, tmp_path, "2\n", header="no")


def test_targets(model, tmp_path):
    (block,) = blocks(model, tmp_path, "size,kind,y\n1,u,b\n2,u,?\n3,u,a.\n", with_target=True)
    assert block.y.tolist() == [1, 0]
    assert (len(block.X), block.n_dotted) == (2, 1)
    (other,) = blocks(model, tmp_path, "size,kind,z\n1,u,b\n", with_target=True, target="z")
    assert other.y.tolist() == [1]
    with pytest.raises(TableError, match="lacks the target 'y'"):
        blocks(model, tmp_path, "size,kind\n1,u\n", with_target=True)
    with pytest.raises(TableError, match="'c' is none of the model's classes a, b"):
        blocks(model, tmp_path, "size,kind,y\n1,u,c\n", with_target=True)


def test_new_categories(model, tmp_path):
    text = "size,kind\n1,u\n2,w\n"
    with pytest.raises(TableError, match=r"line 3: 'w' is a new category of column 'kind'.*--new-categories ignore"):
        blocks(model, tmp_path, text)
    (block,) = blocks(model, tmp_path, text, new_categories="ignore")
    np.testing.assert_array_equal(block.X[:, 1], [0, -1])
    # It is like the mean of all rows, and not like any of the categories.
    scores = model.estimator.decision_function([[2.0, -1], [2.0, 0], [2.0, 1]])
    assert scores[0] == pytest.approx((scores[1] + scores[2]) / 2)


def test_numbers_that_are_categories(tmp_path):
    """A column of whole numbers comes with a point once some of its cells are missing."""
    rows = learn(tmp_path / "train.csv", "kind,y\n3,a\n5,b\n3,a\n", categorical=["kind"])
    block = Block([["5.0", "3", "5.5", "x"]], range(4))
    assert rows.preparation.encode(block, [0], "new.csv", "ignore")[:, 0].tolist() == [1, 0, -1, -1]


def test_missing_where_training_had_none(model, tmp_path):
    (block,) = blocks(model, tmp_path, "size,kind\n?,\n")
    assert np.isnan(block.X).all()
    assert np.isfinite(model.estimator.decision_function(block.X)).all()


def test_missing_cells_of_polynomials(tmp_path):
    rows = learn(tmp_path / "train.csv", "size,y\n1,a\n2,b\n3,a\n4,b\n")
    model = TableModel(TensorTrainClassifier(basis="power", **GIVEN).fit(rows.X, rows.y), rows.preparation, {})
    with pytest.raises(TableError, match=r"line 3: the cell of column 'size' is missing.*'power'.*--basis auto"):
        blocks(model, tmp_path, "size\n1\n?\n")


def test_number_labels(tmp_path):
    rows = learn(tmp_path / "train.csv", "x,y\n1,3\n2,7\n3,3\n4,7\n")
    model = TableModel(TensorTrainClassifier(**GIVEN).fit(rows.X, rows.y), rows.preparation, {})
    (block,) = blocks(model, tmp_path, "x,y\n1,7.0\n1,3\n1,\n", with_target=True)
    assert block.y.tolist() == [1, 0]
    for wrong, message in (("5", "'5' is none of the model's classes 3, 7"), ("b", "the target should be a number")):
        with pytest.raises(TableError, match=message):
            blocks(model, tmp_path, f"x,y\n1,{wrong}\n", with_target=True)


def test_a_plain_model_file_reads_numbers(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [0.0, 1, 2, 3], "b": [1.0, 0, 1, 0]})
    TensorTrainClassifier(basis="power", **GIVEN).fit(frame, [0, 1, 0, 1]).save(tmp_path / "power")
    assert load_table_model(tmp_path / "power").preparation.columns[0] == NumberColumn("a", 0, 1.5, False)
    TensorTrainClassifier(**GIVEN).fit(frame, [0, 1, 0, 1]).save(tmp_path / "m")
    model = load_table_model(tmp_path / "m")
    assert model.preparation.columns[0] == NumberColumn("a", 0)
    (block,) = blocks(model, tmp_path, "b,a\n1,2\n")
    np.testing.assert_array_equal(block.X, [[2.0, 1.0]])
    with pytest.raises(TableError, match="does not say which column is the target"):
        blocks(model, tmp_path, "b,a\n1,2\n", with_target=True)


@pytest.fixture(scope="module")
def frame():
    """What a frame may hold: numbers, truth values, text and categories, also with spaces, gaps and question marks."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 60
    found = pandas.DataFrame(
        {
            "size": rng.normal(size=n).round(2),
            "new": rng.integers(0, 2, n).astype(bool),
            "town": rng.choice([" Bern", " Graz", " ?"], n),
            "floor": pandas.Categorical(rng.choice([1.0, 2.0, 3.5], n)),
        }
    )
    found.loc[3, ["size", "town", "floor"]] = None
    return found


def frame_target(frame):
    return np.where(frame["size"].fillna(0) + frame["new"] + (frame["town"] == " Bern") > 0.8, "yes", "no")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_models_of_frames_read_tables(frame, tmp_path, kind):
    estimator = TensorTrainClassifier(**GIVEN).fit(frame, frame_target(frame))
    estimator.save(tmp_path / "m")
    model = load_table_model(tmp_path / "m")
    _, _, town, floor = model.preparation.columns
    assert (town.categories, floor.categories) == (("?", "Bern", "Graz"), ("1", "2", "3.5"))
    if kind == "csv":
        frame.to_csv(tmp_path / "rows.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        frame.to_parquet(tmp_path / "rows.parquet", index=False)
    with model.open(tmp_path / f"rows.{kind}") as table:
        (block,) = model.blocks(table)
    np.testing.assert_array_equal(model.estimator.predict_proba(block.X), estimator.predict_proba(frame), strict=True)
    # Stored with its preparation it still reads such tables.
    model.save(tmp_path / "again")
    assert load_table_model(tmp_path / "again").preparation == model.preparation


def test_dates_and_levels_that_look_alike_are_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    days = pandas.DataFrame({"day": pandas.to_datetime(["2024-01-01", "2024-02-03", "2024-03-04", "2024-04-06"])})
    TensorTrainClassifier(**GIVEN).fit(days, [0, 1, 0, 1]).save(tmp_path / "days")
    with pytest.raises(TableError, match=r"dates in column 'day', which the commands do not read. Use it from Python"):
        load_table_model(tmp_path / "days")
    alike = pandas.DataFrame({"kind": pandas.Categorical([1, "1", 1, "1"])})
    TensorTrainClassifier(**GIVEN).fit(alike, [0, 1, 0, 1]).save(tmp_path / "alike")
    with pytest.raises(TableError, match=r"column 'kind' that look alike in a table"):
        load_table_model(tmp_path / "alike")
