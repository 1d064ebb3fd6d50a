"""PURE. What-if: capacities fitted to what was measured, and what they say of other settings."""

from __future__ import annotations

from iobench.whatif.capacities import Capacities, measured
from iobench.whatif.content import whatif
from iobench.whatif.predict import Prediction, predict
from iobench.whatif.setting import Setting

__all__ = ["Capacities", "Prediction", "Setting", "measured", "predict", "whatif"]
