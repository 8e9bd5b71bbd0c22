"""Configurations of classifiers for the exports."""

import itertools

_LOSSES, _SCALES = ("logistic", "squared"), ("minmax", None)
_DECISIONS, _BASES = ("one-vs-rest", "one-vs-one", "binary-code"), ("power", "chebyshev", "legendre")

#: (loss, decision, basis, scale, number of classes). The basis matters before the decision does and two classes have
#: no decision, so each is varied with the others at their default.
CONFIGURATIONS = [
    *itertools.product(_LOSSES, _DECISIONS, ("power",), _SCALES, (5,)),
    *itertools.product(_LOSSES, ("one-vs-rest",), _BASES[1:], _SCALES, (5,)),
    *itertools.product(_LOSSES, ("one-vs-one",), ("legendre",), _SCALES, (2,)),
]
