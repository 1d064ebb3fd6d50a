"""PURE. Starts of epochs on the page: the time to the first batch, and the later ones."""

from __future__ import annotations

from iobench.analysis.repeats import by_settings, median_of
from iobench.report.numbers import percent, seconds
from iobench.report.tables import Table
from iobench.result import Result
from iobench.words import params_words

MAIN = 0.5
"""Share of the time from which on the starts of epochs are the main figure."""

_PARTS = ("listing", "worker_start", "fetch", "decode", "rest")
_MOST_ROWS = 400


def sentence(first_s: float | None, later_s: float | None, share: float | None = None) -> str:
    """``The first batch came after 2.2 s. Later epochs wait 0.1 s for theirs.``

    Args:
        first_s: seconds to the first batch.
        later_s: mean seconds from the request of a later epoch to its first batch.
        share: the part of the counted time that starts take, if whole epochs were measured.
    """
    said = []
    if share is not None and share > MAIN:
        said.append(
            "The data fit into the loader's read-ahead: the starts of epochs are the main figure, "
            f"{percent(share)} of the time."
        )
    if first_s is not None:
        said.append(f"The first batch came after {seconds(first_s)}.")
    if later_s is not None:
        said.append(f"Later epochs wait {seconds(later_s)} for theirs.")
    return " ".join(said)


def tables(result: Result) -> list[Table]:
    """The time to the first batch with its parts, and the starts of later epochs."""
    rows = []
    for kind in ("train", "loader"):
        for params, repeats in by_settings(result.trials, kind):
            first_s = median_of(repeats, "time_to_first_batch_s")
            if first_s is None or params.get("input") in ("synthetic", "copy"):
                continue
            row = [params_words(kind, params), seconds(first_s)]
            for part in _PARTS:
                part_s = median_of(repeats, f"first_batch_{part}_s")
                row.append("" if part_s is None else seconds(part_s))
            later_s, share = (
                median_of(repeats, name) for name in ("epoch_start_s", "epoch_start_share")
            )
            row.append("" if later_s is None else seconds(later_s))
            row.append("" if not share else percent(share))
            rows.append(row)
    columns = (
        *("loop or loader", "first batch", "listing", "worker start", "fetch", "decode", "rest"),
        *("start of a later epoch", "starts, share of the time"),
    )
    note = "Medians over repeats. A rate in a steady state has no start in its time."
    return [Table("", columns, rows[:_MOST_ROWS], note)]
