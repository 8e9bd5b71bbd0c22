"""What the tests of model files share: equality, types included, to the last bit or but for rounding, and checksums."""

import hashlib
from dataclasses import fields, is_dataclass

import numpy as np

from polytrain import TensorTrain
from polytrain.decisions import Decision
from polytrain.maps import MapList

# Files hold float32 where models predict the same to 1e-6 of the range of their scores. Numbers, of which some hardly
# matter, may differ by more.
ROUNDING = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 1e-3}


def assert_close(one, two, where="model"):
    """Compare two values as `assert_same` does, floats but for what a file rounds."""
    assert_same(one, two, where, exact=False)


def assert_same(one, two, where="model", exact=True):
    """Compare two values, whatever they are made of."""
    assert type(one) is type(two), f"{where}: {type(one)} and {type(two)}"
    if isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (two.dtype, two.shape), where
        if one.dtype == object:
            assert one.tolist() == two.tolist(), where
        elif exact or one.dtype not in ROUNDING or not one.size:
            assert np.ascontiguousarray(one).tobytes() == np.ascontiguousarray(two).tobytes(), where
        else:
            finite = np.isfinite(one)
            assert (one[~finite] == two[~finite]).all(), where
            largest = np.abs(one[finite]).max(initial=0.0)
            assert (np.abs(one[finite] - two[finite]) <= ROUNDING[one.dtype] * largest).all(), where
    elif isinstance(one, list | tuple):
        assert len(one) == len(two), where
        for k, (first, second) in enumerate(zip(one, two, strict=True)):
            assert_same(first, second, f"{where}[{k}]", exact)
    elif isinstance(one, dict):
        assert list(one) == list(two), where
        assert_same(list(one), list(two), f"keys of {where}")
        for key in one:
            assert_same(one[key], two[key], f"{where}[{key!r}]", exact)
    elif isinstance(one, TensorTrain):
        assert_same(one.cores, two.cores, f"{where}.cores", exact)
    elif isinstance(one, np.random.RandomState):
        assert_same(one.get_state(legacy=False), two.get_state(legacy=False), where)
    elif isinstance(one, Decision):
        pass  # without state: the type says all
    elif isinstance(one, MapList):
        assert_same(list(one), list(two), where, exact)
    elif is_dataclass(one):
        for field in fields(one):  # what is computed from them may be there already or not yet
            assert_same(getattr(one, field.name), getattr(two, field.name), f"{where}.{field.name}", exact)
    elif hasattr(one, "__dict__"):
        assert set(vars(one)) == set(vars(two)), where
        for name in vars(one):
            assert_same(vars(one)[name], vars(two)[name], f"{where}.{name}", exact)
    else:
        assert one == two or (one != one and two != two), f"{where}: {one!r} and {two!r}"


def assert_same_predictions(one, two, X, exact=True):
    """Compare all that a fitted model says about rows."""
    for method in ("predict", "decision_function", "predict_proba", "predict_log_proba"):
        assert hasattr(one, method) == hasattr(two, method)
        if hasattr(one, method):
            for rows in (X, X.astype(np.float32)) if isinstance(X, np.ndarray) else (X,):
                assert_same(getattr(one, method)(rows), getattr(two, method)(rows), method, exact)


OPENING = b'{"__metadata__":{"format":"polytrain","sha256":"'


def seal(raw):
    """Put the right checksum into a model file; nothing happens to a file that has no place for one."""
    place = 8 + len(OPENING)
    if raw[8:place] != OPENING or len(raw) < place + 64:
        return raw
    digest = hashlib.sha256(raw[:place] + b"0" * 64 + raw[place + 64 :]).hexdigest().encode()
    return raw[:place] + digest + raw[place + 64 :]
