"""PURE. The gain of a recommendation, and how to make the change, in words.

The sentences of the recommendations themselves are in ``iobench.analysis.recommendations``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from shlex import quote
from typing import Any

from dataprep.message_text import counted
from iobench.analysis.recommendations import Recommendation, config_value
from iobench.analysis.situation import ACCURATE, PredictionCheck
from iobench.results.statistics import Estimate


def result_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return the verdict, the first recommendation and the confidence, for a terminal."""
    lines = [str(summary["verdict"])]
    recommendations = summary.get("recommendations", ())
    if recommendations:
        first = recommendations[0]
        gain = "gain not predicted"
        if first["gain"]:
            gain = f"{first['gain']['median']:.2f} times, {first['basis']}"
        lines.append(f"First change: {first['action']} ({gain}); iobench advise RUN_DIR lists all.")
    if summary.get("confidence"):
        lines.append(f"Confidence: {summary['confidence']}")
    return lines


def recommendation_words(change: Recommendation) -> str:
    """Return ``Use 2 loader workers instead of 1: 1.60 times (1.45 to 1.76), predicted``."""
    if change.gain is None:
        return f"{change.action}: gain not predicted"
    return f"{change.action}: {gain_words(change.gain)}, {change.basis}"


def gain_words(gain: Estimate) -> str:
    """Return ``1.60 times (1.45 to 1.76)``."""
    if gain.low < gain.high:
        return f"{gain.median:.2f} times ({gain.low:.2f} to {gain.high:.2f})"
    return f"{gain.median:.2f} times"


def how_words(change: Recommendation) -> list[str]:
    """Return the ways to make a change.

    They are a command or keys of the config, and the argument in a training script.
    """
    ways = []
    if change.command:
        ways.append(change.command)
    elif change.config:
        options = []
        for key, value in change.config.items():
            assignment = f"{key}={config_value(value)}"
            options.append(f"--set {quote(assignment)}")
        ways.append(f"iobench: {' '.join(options)}")
    if change.code:
        ways.append(f"PyTorch: {change.code}" if "DataLoader" in change.code else change.code)
    return ways


def prediction_accuracy_words(checks: Sequence[PredictionCheck], group: str) -> str:
    """Return how accurate the predictions were for the loop ``group``."""
    own_errors = [check.error for check in checks if check.group == group]
    errors = [abs(error) for error in own_errors if error is not None]
    if not errors:
        return "The predictions were not validated: add the loader of a loop under loaders."
    loops = counted(len(errors), "measured loop")
    if max(errors) <= ACCURATE:
        return f"Predictions were checked on {loops}: within {ACCURATE * 100:.0f} %."
    return f"Predictions were checked on {loops}: off by up to {max(errors) * 100:.0f} %."
