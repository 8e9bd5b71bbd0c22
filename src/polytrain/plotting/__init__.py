"""Pictures in the style of scikit-learn's displays: compute once, keep the data, draw where you like.

Every display has ``from_estimator``, which computes and draws, and ``plot``, which draws again. Both return the
display; ``ax_`` and ``figure_`` say where it is drawn. Needs matplotlib, the extra ``plot``.
"""

from polytrain.plotting._style import COLOURS, MARKERS, clean_axes, make_panels
from polytrain.plotting.effects import EffectsDisplay, ImportancesDisplay, draw_main_effect, draw_pair_effect
from polytrain.plotting.explanations import InteractionDisplay, PartialDependenceDisplay, TermStrengthDisplay
from polytrain.plotting.local import LocalExplanationDisplay
from polytrain.plotting.training import ConvergenceDisplay, RankDisplay

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
    "make_panels",
]
