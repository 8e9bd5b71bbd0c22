"""Checkpoints that are damaged: one error that says so."""

import random

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


def test_wrong_metadata(tmp_path, raw):
    path = tmp_path / "c"
    path.write_bytes(raw)
    tensors, metadata = read_tensor_file(path, 1 << 24)
    for changed in (
        {**metadata, "more": "text"},
        *({key: value for key, value in metadata.items() if key != name} for name in metadata),
    ):
        header, body = pack_tensors(tensors, changed)
        path.write_bytes(b"".join([header, *body]))
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(path)


def check_flips(tmp_path, raw, count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(raw)
        for _ in range(rng.choice((1, 1, 3))):
            damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
        if rng.random() < 0.1:
            del damaged[rng.randrange(len(damaged)) :]
        (tmp_path / "c").write_bytes(damaged)
        with pytest.raises(ValueError, match=UNUSABLE):
            learn(tmp_path / "c")


def test_bit_flips(tmp_path, raw):
    check_flips(tmp_path, raw, 150, 0)


@pytest.mark.slow
def test_many_damaged_checkpoints(tmp_path, raw):
    check_flips(tmp_path, raw, 2000, 1)
