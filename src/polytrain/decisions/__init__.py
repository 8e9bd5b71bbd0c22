"""Decisions: which binary problems to learn, and how their scores become classes.

A new decision is one subclass of `Decision`, and one entry in ``_DECISIONS`` below.
"""

from __future__ import annotations

from polytrain.decisions.strategies import BinaryCode, Decision, OneVsOne, OneVsRest, Softmax, TwoClasses

__all__ = [
    "BinaryCode",
    "Decision",
    "OneVsOne",
    "OneVsRest",
    "Softmax",
    "TwoClasses",
    "decision_names",
    "get_decision",
]

_DECISIONS: dict[str, Decision] = {decision.name: decision for decision in (OneVsRest(), OneVsOne(), BinaryCode())}


def decision_names() -> list[str]:
    """Return the names that an estimator's ``decision`` may have.

    Examples
    --------
    >>> from polytrain.decisions import decision_names
    >>> decision_names()
    ['one-vs-rest', 'one-vs-one', 'binary-code']
    """
    return list(_DECISIONS)


def get_decision(name: str, n_classes: int) -> Decision:
    """Return the decision of this name for ``n_classes`` classes. Between two classes there is only one.

    Examples
    --------
    >>> from polytrain.decisions import get_decision
    >>> get_decision("one-vs-one", 3), get_decision("one-vs-one", 2)
    (OneVsOne(), TwoClasses())
    """
    decisions = _DECISIONS | {Softmax.name: Softmax()}  # which comes with a loss, rather than by name
    if n_classes == 2 and name in (*decisions, TwoClasses.name):
        return TwoClasses()
    if name not in decisions:
        raise ValueError(f"decision must be one of {list(_DECISIONS)}, got {name!r}.")
    return decisions[name]
