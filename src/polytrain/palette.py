"""Colours that all pictures share, on white and on dark paper."""

from __future__ import annotations

__all__ = ["COLOURS", "DARK_COLOURS", "DARK_PAPER", "DASHES", "PAPER"]

#: Hues of Okabe and Ito's palette, which colour-blind readers tell apart, dark enough for thin lines on white; then
#: black and grey.
COLOURS = ("#0072B2", "#C04F00", "#00805E", "#A8497F", "#5A5FC7", "#8A6A00", "#000000", "#7F7F7F")
#: The same hues for dark paper.
DARK_COLOURS = ("#56B4E9", "#F0A04B", "#3FC79A", "#E08FC0", "#A3A8FF", "#E0C04A", "#FFFFFF", "#A0A0A0")
#: Lengths of dashes and gaps, so that lines differ without colour; none for a line that is whole.
DASHES = ((), (6, 3), (2, 3), (8, 3, 2, 3))

#: What a page is made of, by the names of its CSS variables.
PAPER = {"paper": "#fff", "ink": "#1c1e21", "muted": "#5b6168", "rule": "#d5d9de", "panel": "#f4f6f8"}
DARK_PAPER = {"paper": "#14171a", "ink": "#e8eaed", "muted": "#a3abb3", "rule": "#3a4047", "panel": "#1f2429"}
