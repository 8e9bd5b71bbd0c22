"""Pictures in the style of scikit-learn's displays: compute once, keep the data, draw where you like.

Every display has ``from_estimator``, which computes and draws, and ``plot``, which draws again. Both return the
display; ``ax_`` and ``figure_`` say where it is drawn. For other settings of the computation, pass a result of
`polytrain.explain` to the display: ``Display(result).plot()``. Needs matplotlib, the extra ``plot``.
"""

from polytrain.plotting.displays import (
    ConvergenceDisplay,
    LocalExplanationDisplay,
    PartialDependenceDisplay,
    RankDisplay,
    TermStrengthDisplay,
)
from polytrain.plotting.effects import (
    EffectsDisplay,
    ImportancesDisplay,
    InteractionDisplay,
    draw_main_effect,
    draw_pair_effect,
)
from polytrain.plotting.style import COLOURS, MARKERS, clean_axes

__all__ = [
    "COLOURS",
    "MARKERS",
    "ConvergenceDisplay",
    "EffectsDisplay",
    "ImportancesDisplay",
    "InteractionDisplay",
    "LocalExplanationDisplay",
    "PartialDependenceDisplay",
    "RankDisplay",
    "TermStrengthDisplay",
    "clean_axes",
    "draw_main_effect",
    "draw_pair_effect",
]
