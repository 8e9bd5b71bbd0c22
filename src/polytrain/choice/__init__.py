"""What a fit chooses where the user leaves it open: maps, bandwidth, alpha and rank; and how scores become log-odds."""

from polytrain.choice.calibration import fit_log_odds
from polytrain.choice.choose import Choice, HeldOut, Tried, Wishes, choose
from polytrain.choice.chosen import Chosen
from polytrain.choice.map_maker import MapMaker

__all__ = ["Choice", "Chosen", "HeldOut", "MapMaker", "Tried", "Wishes", "choose", "fit_log_odds"]
