"""Settings: what they leave open, and the plan that leaves nothing open."""

from dataclasses import replace
from pathlib import Path

import pytest

from polytrain.learning.settings import Settings, Start

OPEN = Settings(
    "squared", "auto", 0.1, "auto", "auto", "auto", 0.0,
    bases=("auto",) * 4, degrees=(2,) * 4, bandwidth="auto", relevance="auto", groups=((0, 1),),
)  # fmt: skip
DIMS = (2, 3, 3, 2)


def test_a_plan_leaves_nothing_open_and_is_not_about_maps():
    plan = OPEN.settled(DIMS)
    assert plan == Settings("squared", (1, 2, 6, 2, 1), 0.1, "linear", "auto", 4, 0.0)
    assert plan.ranks == plan.rank


@pytest.mark.parametrize(("rank", "ranks"), [(1, (1, 1, 1, 1, 1)), (3, (1, 2, 3, 2, 1)), ([2, 5, 1], (1, 2, 3, 1, 1))])
def test_given_ranks_are_those_of_the_plan_as_far_as_the_dimensions_allow(rank, ranks):
    assert replace(OPEN, rank=rank).settled(DIMS).ranks == ranks


def test_what_was_chosen_comes_before_what_is_usual():
    plan = OPEN.settled(DIMS, alpha=2.0, rank=(1, 1, 1, 1, 1), init="dual", max_sweeps=0)
    assert (plan.alpha, plan.ranks, plan.init, plan.max_sweeps) == (2.0, (1, 1, 1, 1, 1), "dual", 0)


def test_validation_rows_allow_many_sweeps():
    assert replace(OPEN, patience=2).settled(DIMS).max_sweeps == 20


def test_a_linear_plan_has_no_sweeps():
    plan = OPEN.linear(DIMS, 0.5)
    assert (plan.alpha, plan.ranks, plan.init, plan.max_sweeps) == (0.5, (1, 2, 2, 2, 1), "linear", 0)


def test_later_stages_of_a_train_have_files_of_their_own():
    start = Start(7, None, Path("train.safetensors"))
    assert start.following([1], 2) == Start(7, [1], Path("train.2.safetensors"))
    assert Start(7).following(None, 2) == Start(7)
