"""The safetensors layout: what is written is read back, also by the safetensors package."""

import io

import numpy as np
import pytest

from polytrain.tensor_file import DTYPES, pack_tensors, parse_json, read_header, read_tensors

TENSORS = {
    "none": np.zeros((0, 3)),
    "number": np.array(7, dtype=np.int8),
    "columns": np.arange(12.0).reshape(3, 4).T,
    "swapped": np.arange(3, dtype=">u2"),
    **{name: np.array([[0, 1, 1]]).astype(dtype) for name, dtype in DTYPES.items()},
}


def packed(tensors=TENSORS, **metadata):
    header, parts = pack_tensors(tensors, metadata)
    return b"".join([header, *parts])


def read(raw, limit=10_000):
    stream = io.BytesIO(raw)
    header = read_header(stream, len(raw), limit)
    return read_tensors(stream, header), header.metadata


def test_round_trip():
    found, metadata = read(packed(note="\u00e4 and \N{GRINNING FACE}"))
    assert metadata == {"note": "\u00e4 and \N{GRINNING FACE}"}
    assert found.keys() == TENSORS.keys()
    for name, values in TENSORS.items():
        assert found[name].dtype == values.dtype.newbyteorder("=")
        assert found[name].flags.writeable
        np.testing.assert_array_equal(found[name], values)


def test_arrays_are_aligned():
    raw = packed()
    header = read_header(io.BytesIO(raw), len(raw), 10_000)
    assert len(header.raw) % 8 == 0
    for place in header.places.values():
        assert place.data_offsets[0] % DTYPES[place.dtype].itemsize == 0


def test_the_safetensors_package_reads_it():
    safetensors = pytest.importorskip("safetensors.numpy")
    found = safetensors.load(packed(note="text"))
    for name, values in TENSORS.items():
        np.testing.assert_array_equal(found[name], values)


def test_lines_of_nothing_are_neither_written_nor_read():
    with pytest.raises(ValueError, match=r"shape \(5, 0\): 5 lines without a number"):
        packed({"x": np.zeros((5, 0))})
    raw = packed({"x": np.zeros((0, 5))}).replace(b'"shape":[0,5]', b'"shape":[5,0]')
    with pytest.raises(ValueError, match=r"shape \(5, 0\): 5 lines without a number"):
        read(raw)


@pytest.mark.parametrize("text", [rb"\ud800", rb"\uDfff", b"\xed\xa0\x80"])
def test_half_a_character_is_refused(text):
    with pytest.raises(ValueError, match=r"half of a character|can't decode"):
        parse_json(b'["' + text + b'"]')
    assert parse_json(rb'["\ud83d\ude00", "\\ud800"]') == ["\N{GRINNING FACE}", r"\ud800"]


def test_unknown_types_are_not_written():
    with pytest.raises(ValueError, match="x has the dtype complex128"):
        pack_tensors({"x": np.zeros(2, dtype=complex)}, {})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b'"BOOL"', b'"BOOM"', "has dtype BOOM; supported are"),
        (b"[1,3]", b"[1,4]", "do not fit its shape"),
        (b"[1,3]", b"[1.0]", "cannot be read"),
        (b"[1,3]", b"[-13]", "not plausible"),
        (b"[1,3]", b"[1e3]", "not plausible"),
        (b'"shape":[1,3]', b'"shape":"13 "', "shape of .* is '13 ', which is not plausible"),
        (b'"dtype"', b'"stype"', "needs the entries .'dtype', 'shape', 'data_offsets'."),
    ],
)
def test_bad_headers(old, new, message):
    with pytest.raises(ValueError, match=message):
        read(packed().replace(old, new))


def test_bool_bytes_are_checked():
    raw = packed({"flag": np.array([False, True])})
    with pytest.raises(ValueError, match="bytes other than 0 and 1"):
        read(raw[:-1] + b"\2")


def test_limits():
    with pytest.raises(ValueError, match="header length is not plausible"):
        read(packed(), limit=100)
    with pytest.raises(ValueError, match="the shape or the offsets"):
        read(packed({"x": np.zeros((1,) * 9)}))
