"""Checkpoints that are damaged, or made by somebody else: one error that says so, or a fit that goes on."""

import copy
import hashlib
import json
import random

import numpy as np
import pytest
from reference import make_problem

from polytrain.learning.settings import Settings, Start
from polytrain.learning.trainer import learn_train
from polytrain.tensor import clip_ranks
from polytrain.tensor_file import pack_tensors, read_tensor_file

PROBLEM = make_problem(0, (2, 3, 2), 3, 60)
PLAN = Settings("squared", clip_ranks(PROBLEM.dims, 3), 1e-3, "linear", "auto", 4, 0.0)
UNUSABLE = r"is not a usable checkpoint: .*[^.]\. Delete it to start anew\.$"


class Stopped(Exception):
    """What interrupts a fit here."""


def learn(path, stop_after=None):
    def report(record, cores):
        if record["sweep"] == stop_after:
            raise Stopped

    return learn_train(PLAN, PROBLEM.maps, PROBLEM.rows, Start(7, None, path), report=report)


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """A checkpoint after two of four sweeps."""
    path = tmp_path_factory.mktemp("checkpoint") / "train.safetensors"
    with pytest.raises(Stopped):
        learn(path, 2)
    return path.read_bytes()


@pytest.fixture
def parts(raw, tmp_path):
    """The cores, the metadata and the document of that checkpoint."""
    path = tmp_path / "whole"
    path.write_bytes(raw)
    tensors, metadata = read_tensor_file(path, 1 << 24)
    return tensors, metadata, json.loads(metadata["document"])


def assemble(path, tensors, metadata, document):
    """Write a checkpoint whose checksum is right, whatever it holds."""
    text = json.dumps(document)
    _, body = pack_tensors(tensors, {})
    digest = hashlib.sha256(text.encode() + b"".join(body)).hexdigest()
    header, body = pack_tensors(tensors, {**metadata, "document": text, "sha256": digest})
    path.write_bytes(b"".join([header, *body]))
    return path


def test_put_together_again_it_is_good(tmp_path, parts):
    expected = learn(None)
    for core, wanted in zip(learn(assemble(tmp_path / "c", *parts)).cores, expected.cores, strict=True):
        np.testing.assert_array_equal(core, wanted)


WRONG = [
    (("position",), 1), (("position",), -1), (("position",), 2.0), (("position",), True), (("position",), None),
    (("stop_reason",), "boredom"), (("stop_reason",), 3), (("stop_reason",), ["tolerance"]), (("stop_reason",), {}),
    (("history",), []), (("history",), {}), (("history",), None), (("history",), [1, 2]), (("history",), [{}, {}]),
    (("history", 0, "sweep"), 2), (("history", 1, "sweep"), "2"), (("history", 0, "n_rows"), 0),
    (("history", 0, "n_rows"), 1.5), (("history", 0, "loss"), "small"), (("history", 0, "loss"), None),
    (("history", 1, "objective"), [1.0]), (("history", 1, "seconds"), {}), (("history", 0, "ranks"), [1, 1]),
    (("history", 0, "ranks"), 3), (("history", 0, "ranks"), None), (("history", 0, "ranks"), [1, "2", 2, 1]),
    (("random_state",), None), (("random_state",), {}), (("random_state",), []),
    (("random_state", "bit_generator"), "MT19937"), (("random_state", "bit_generator"), 3),
    (("random_state", "state"), 5), (("random_state", "state"), {}), (("random_state", "state", "state"), -1),
    (("random_state", "state", "state"), 1 << 128), (("random_state", "state", "inc"), "7"),
    (("random_state", "state", "inc"), 0.5), (("random_state", "has_uint32"), None),
    (("random_state", "uinteger"), 1 << 64), (("random_state", "uinteger"), "x"),
]  # fmt: skip


@pytest.mark.parametrize(("place", "value"), WRONG)
def test_wrong_entries(tmp_path, parts, place, value):
    tensors, metadata, document = parts
    entry = document
    for step in place[:-1]:
        entry = entry[step]
    entry[place[-1]] = value
    with pytest.raises(ValueError, match=UNUSABLE):
        learn(assemble(tmp_path / "c", tensors, metadata, document))


def test_missing_and_further_entries(tmp_path, parts):
    tensors, metadata, document = parts
    for name in document:
        fewer = {key: value for key, value in document.items() if key != name}
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(assemble(tmp_path / "c", tensors, metadata, fewer))
    for other in ({**document, "more": 1}, [document], "text", None, 3):
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(assemble(tmp_path / "c", tensors, metadata, other))
    for name in document["history"][0]:
        changed = copy.deepcopy(document)
        del changed["history"][0][name]
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(assemble(tmp_path / "c", tensors, metadata, changed))


def test_wrong_metadata(tmp_path, parts):
    tensors, metadata, document = parts
    text = json.dumps(document)
    for changed in (
        {**metadata, "more": "text"},
        *({key: value for key, value in metadata.items() if key != name} for name in metadata),
    ):
        header, body = pack_tensors(tensors, changed)
        (tmp_path / "c").write_bytes(b"".join([header, *body]))
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(tmp_path / "c")
    for wrong in ("[" * 100_000, "NaN", "", "\ud800", text[:-1], text.replace(": 2", ": 1e999")):
        digest = hashlib.sha256(wrong.encode("utf-8", "replace"))
        _, body = pack_tensors(tensors, {})
        digest.update(b"".join(body))
        header, body = pack_tensors(tensors, {**metadata, "document": wrong, "sha256": digest.hexdigest()})
        (tmp_path / "c").write_bytes(b"".join([header, *body]))
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(tmp_path / "c")


def test_wrong_cores(tmp_path, parts):
    tensors, metadata, document = parts
    first, *others = sorted(tensors)
    infinite = tensors[first].copy()
    infinite[0, 0, 0] = np.inf
    for changed in (
        {},
        {name: tensors[name] for name in others},
        {**tensors, "core.00003": np.ones((1, 2, 1))},
        {**tensors, first: infinite},
        {**tensors, first: np.full_like(infinite, np.nan)},
        {**tensors, first: tensors[first].astype(np.float32)},
        {**tensors, first: tensors[first].transpose(2, 1, 0).copy()},
        {**tensors, first: tensors[first][0]},
        {**tensors, first: tensors[first][:0]},
        {("core.x" if name == first else name): tensor for name, tensor in tensors.items()},
    ):
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(assemble(tmp_path / "c", changed, metadata, document))


def go_on(path):
    """Only one error may come out, or a fit that goes on."""
    try:
        learn(path)
    except ValueError as error:
        assert "is not a usable checkpoint" in str(error) or "belongs to a fit with other rows" in str(error)  # noqa: PT017
    except Exception as error:
        pytest.fail(f"{error!r} of {path.read_bytes()[:2000]!r}")


def check_flips(tmp_path, raw, count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(raw)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del damaged[rng.randrange(len(damaged)) :]
        (tmp_path / "c").write_bytes(damaged)
        go_on(tmp_path / "c")


VALUES = (None, True, False, 0, 1, -1, 2, 1 << 70, 0.5, -1e300, "", "tolerance", [], [1, 2], {}, {"state": 1})


def nodes(value, where=()):
    """All places in a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inner:
        yield (*where, key)
        yield from nodes(child, (*where, key))


def check_changes(tmp_path, parts, count, seed):
    tensors, metadata, document = parts
    rng = random.Random(seed)
    for _ in range(count):
        changed = copy.deepcopy(document)
        for _ in range(rng.choice((1, 1, 2))):
            places = list(nodes(changed))
            if not places:
                break
            *outer, last = rng.choice(places)
            entry = changed
            for step in outer:
                entry = entry[step]
            if rng.random() < 0.2:
                del entry[last]
            else:
                entry[last] = rng.choice(VALUES)
        go_on(assemble(tmp_path / "c", tensors, metadata, changed))


def test_bit_flips(tmp_path, raw):
    check_flips(tmp_path, raw, 150, 0)


def test_changed_documents(tmp_path, parts):
    check_changes(tmp_path, parts, 150, 0)


@pytest.mark.slow
def test_many_damaged_checkpoints(tmp_path, raw, parts):
    check_flips(tmp_path, raw, 2000, 1)
    check_changes(tmp_path, parts, 3000, 1)
