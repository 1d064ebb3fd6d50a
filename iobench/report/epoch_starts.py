"""PURE. The starts of epochs on the page: the time to the first batch, and later epochs."""

from __future__ import annotations

from iobench.analysis.repeats import Repeats, median_of
from iobench.report.counting_rules import settings_with_data
from iobench.report.tables import Table, first_rows
from iobench.results.numbers import duration, precise_percent
from iobench.results.result import Result
from iobench.results.wording import params_words

MAIN_SHARE = 0.5
"""If the starts of epochs take a larger share of the time than this, they are the main figure."""

_FIRST_BATCH_PARTS = ("listing", "worker_start", "fetch", "decode", "rest")
_COLUMNS = (
    "loop or loader",
    "time to first batch",
    "listing",
    "worker start",
    "fetch",
    "decode",
    "rest",
    "start of a later epoch",
    "share of the time in starts",
)
_NOTE = (
    "Medians over repeats. The five columns after the time to the first batch are its parts. A "
    "rate in a steady state does not include starts."
)


def sentences(
    first_batch_s: float | None, later_start_s: float | None, share: float | None = None
) -> str:
    """``The first batch came after 2.2 s. Later epochs wait 0.1 s for their first batch.``

    Args:
        first_batch_s: seconds to the first batch.
        later_start_s: mean seconds from the request of a later epoch to its first batch.
        share: the share of the counted time that starts take; None if no whole epochs were
            measured. A share above ``MAIN_SHARE`` gives a further sentence.

    Returns:
        The sentences; empty if nothing is known.
    """
    texts = []
    if share is not None and share > MAIN_SHARE:
        texts.append(
            "The data fits into the loader's read-ahead, so the starts of epochs are the main "
            f"figure: {precise_percent(share)} of the time."
        )
    if first_batch_s is not None:
        texts.append(f"The first batch came after {duration(first_batch_s)}.")
    if later_start_s is not None:
        texts.append(f"Later epochs wait {duration(later_start_s)} for their first batch.")
    return " ".join(texts)


def tables(result: Result) -> list[Table]:
    """The time to the first batch with its parts, and the starts of later epochs."""
    rows = []
    for kind, params, repeats in settings_with_data(result):
        if median_of(repeats, "time_to_first_batch_s") is not None:
            rows.append([params_words(kind, params), *_cells(repeats)])
    return [first_rows(_COLUMNS, rows, "loops and loaders", [_NOTE])]


def _cells(repeats: Repeats) -> list[str]:
    """The cells of a row after the name of the setting. A cell without a value is empty."""
    metrics = ["time_to_first_batch_s"]
    metrics += [f"first_batch_{part}_s" for part in _FIRST_BATCH_PARTS]
    metrics.append("epoch_start_s")
    cells = []
    for metric in metrics:
        seconds = median_of(repeats, metric)
        cells.append("" if seconds is None else duration(seconds))
    share = median_of(repeats, "epoch_start_share")
    cells.append(precise_percent(share) if share else "")
    return cells
