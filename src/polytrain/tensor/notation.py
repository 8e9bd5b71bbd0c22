"""Polynomials as text: ``4*x1 + x1^3 - 2*x1*x2*x3 - 7*x2*x3^2``."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

__all__ = ["default_names", "format_terms", "parse_terms"]

_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"


def default_names(n_variables: int) -> tuple[str, ...]:
    """Return x1, x2, ...: counted from 1, as in the formulas of the paper."""
    return tuple(f"x{k}" for k in range(1, n_variables + 1))


def format_terms(
    terms: Iterable[tuple[Sequence[int], float]], names: Sequence[str], precision: int | None, max_terms: int | None
) -> str:
    """Print terms in the given order; after ``max_terms`` of them only dots."""
    text = ""
    for count, (exponents, coefficient) in enumerate(terms):
        if count == max_terms:
            return f"{text} + ..."
        sign = "-" if coefficient < 0 else "+"
        body = _format_term(exponents, abs(coefficient), names, precision)
        if count == 0:
            text = body if sign == "+" else f"-{body}"
        else:
            text += f" {sign} {body}"
    return text or "0"


def _format_term(exponents: Sequence[int], magnitude: float, names: Sequence[str], precision: int | None) -> str:
    """Print one term without its sign."""
    number = repr(magnitude).removesuffix(".0") if precision is None else f"{magnitude:.{precision}g}"
    factors = [
        name if exponent == 1 else f"{name}^{exponent}"
        for name, exponent in zip(names, exponents, strict=True)
        if exponent > 0
    ]
    if number == "1" and factors:
        return "*".join(factors)
    return "*".join([number, *factors])


def parse_terms(text: str, names: Sequence[str] | None) -> tuple[dict[tuple[int, ...], float], int]:
    """Read what ``format_terms`` prints; ``**`` also works for ``^``.

    Returns the terms, like ones added up, and the number of variables: the number of names, or without names the
    largest index of the variables x1, x2, ... in the text.
    """
    if names is None:
        variable = r"x[1-9]\d*"
    else:
        variable = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    factor = rf"(?:{_NUMBER}|(?:{variable})(?:(?:\^|\*\*)\d+)?)"
    term_pattern = re.compile(rf"\s*(?P<sign>[-+]?)\s*(?P<body>{factor}(?:\s*\*\s*{factor})*)\s*")
    factor_pattern = re.compile(rf"(?P<number>{_NUMBER})|(?P<name>{variable})(?:(?:\^|\*\*)(?P<power>\d+))?")

    read: list[tuple[float, dict[int, int]]] = []
    position = 0
    while position < len(text) or not read:
        match = term_pattern.match(text, position)
        if match is None or (read and not match["sign"]):
            raise ValueError(
                f"cannot read the polynomial at character {position}, {text[position : position + 20]!r}: write terms "
                f"such as 2*{names[0] if names else 'x1'}^3 with + or - between them."
            )
        coefficient = -1.0 if match["sign"] == "-" else 1.0
        powers: dict[int, int] = defaultdict(int)
        for part in factor_pattern.finditer(match["body"]):
            if part["number"]:
                coefficient *= float(part["number"])
            else:
                index = names.index(part["name"]) if names else int(part["name"][1:]) - 1
                powers[index] += int(part["power"] or 1)
        read.append((coefficient, powers))
        position = match.end()

    n_variables = len(names) if names else max((index + 1 for _, powers in read for index in powers), default=0)
    terms: dict[tuple[int, ...], float] = defaultdict(float)
    for coefficient, powers in read:
        terms[tuple(powers[index] for index in range(n_variables))] += coefficient
    return dict(terms), n_variables
