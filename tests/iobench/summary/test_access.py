"""Access modes beside each other, and what may be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from iobench.summary.access import access_modes, named, sentences, telling
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import one

SIX = (0.97, 0.98, 0.99, 1.01, 1.02, 1.03)
COMMON = {"cache": "warm", "workers": 2, "batch_size": 8, "epochs": 2}
OF = {"file": "torch-map", "lazy": "torch-map", "pipe": "torch-iterable", "mount": "torch-map"}


def mode(
    access: str,
    first_s: float | None,
    steady: float | None,
    scatter: Sequence[float] = SIX,
    **changed: Any,
) -> list[Trial]:
    """Repeats of a mode: its first epoch, and its rate from then on."""
    params = {"loader": OF[access], "data": "shards@s3", "access": access, **COMMON, **changed}
    trials = []
    for repeat, share in enumerate(scatter):
        metrics: dict[str, Any] = {"samples_per_s": 500.0, "data_bytes": 10**9}
        if first_s is not None:
            metrics["first_epoch_s"] = first_s * share
        if steady is not None:
            metrics["steady_samples_per_s"] = steady * share
        cold = Cold("warm", "server cache unknown", cache_resident=access == "file")
        trials.append(one("loader", params, repeat=repeat, cold=cold, **metrics))
    return trials


def names(trials: Sequence[Trial]) -> list[str]:
    """What each mode is called."""
    entries = access_modes(trials)
    return [named(entry, telling(entries)) for entry in entries]


def said(*modes: Sequence[Trial]) -> list[str]:
    """The sentences on them."""
    return sentences(access_modes([trial for each in modes for trial in each]))


def test_each_mode_is_an_entry() -> None:
    """With its params and figures; trials without one are none, nor are layouts."""
    layout = one("layout", {"data": "files@disk", "access": "files"}, samples_per_s=1.0)
    plain = one("loader", {"loader": "raw", "data": "shards@s3", **COMMON}, samples_per_s=1.0)
    loop = one("train", {"group": "g", "loader": "raw", "access": "file"}, samples_per_s=1.0)
    found = access_modes([layout, plain, loop, *mode("file", 10.0, 1000.0)])
    assert [(entry["kind"], entry["access"]) for entry in found] == [
        ("loader", "file"),
        ("train", "file"),
    ]
    entry = found[0]
    assert entry["first_epoch_s"]["median"] == 10.0
    assert entry["disk_needed_bytes"] is None
    assert entry["cache_resident"] is True
    assert entry["label"] == "server cache unknown"


def test_the_best_of_either_time_is_named() -> None:
    """Where no other's interval reaches its own."""
    assert said(
        mode("file", 20.0, 2000.0), mode("pipe", 10.0, 800.0), mode("lazy", 40.0, 300.0)
    ) == [
        "For a first epoch pipe (10 s) is the best; from the second one on file (2,000 samples/s) "
        "is the best."
    ]


def test_what_intervals_do_not_tell_apart_is_not_told_apart() -> None:
    """The others that reach the best one's are named beside it, with their medians."""
    (found,) = said(
        mode("file", 20.0, 2000.0), mode("mount", 10.3, 1990.0), mode("pipe", 10.0, 800.0)
    )
    assert found == (
        "For a first epoch pipe (10 s) and mount (10.3 s) cannot be told apart as the best; from "
        "the second one on file (2,000 samples/s) and mount (1,990 samples/s) cannot be told apart "
        "as the best."
    )


def test_few_repeats_bear_no_choice() -> None:
    """However far apart their medians are."""
    (found,) = said(mode("file", 20.0, 2000.0, SIX[:5]), mode("pipe", 10.0, 800.0, SIX[:5]))
    assert found.startswith("Too few repeats to call a mode the best")


def test_epochs_that_were_not_seen_are_not_guessed() -> None:
    """Neither a first one nor a second; it is said what would show them."""
    (found,) = said(mode("file", None, None), mode("pipe", None, None))
    assert found.startswith("No epoch was seen to its end")
    (found,) = said(mode("file", 10.0, None), mode("pipe", 12.0, None))
    assert found == "No second epoch was seen to its end: set epochs: 2 to compare modes."


def test_one_mode_alone_is_not_compared() -> None:
    """Nor two at different work."""
    assert said(mode("file", 20.0, 2000.0)) == []
    assert said(mode("file", 20.0, 2000.0), mode("pipe", 10.0, 800.0, batch_size=64)) == []


def test_several_of_a_mode_are_told_apart() -> None:
    """By what differs among them, and by nothing else."""
    several = [
        *mode("file", 20.0, 2000.0),
        *mode("file", 20.0, 2000.0, loader="torch-iterable"),
        *mode("mount", 20.0, 2000.0, data="shards@disk"),
        *mode("pipe", 10.0, 800.0, shuffle_buffer=10),
        *mode("pipe", 10.0, 800.0, shuffle_buffer=20),
    ]
    assert names(several) == [
        "file (torch-map)",
        "file (torch-iterable)",
        "mount (torch-map)",
        "pipe (torch-iterable, shuffle buffer 10)",
        "pipe (torch-iterable, shuffle buffer 20)",
    ]
    assert names([*mode("file", 1.0, 1.0), *mode("lazy", 1.0, 1.0)]) == [
        *("file", "lazy"),
    ]


def test_nothing_measured_is_nothing_said() -> None:
    """Runs of an earlier version have none."""
    assert access_modes([]) == []
    assert sentences([]) == []


def test_a_tie_of_several_of_a_mode_names_each() -> None:
    """With its loader and its median in one pair of brackets."""
    (found,) = said(
        mode("file", 20.0, 2000.0),
        mode("file", 10.0, 500.0, loader="torch-iterable"),
        mode("mount", 10.1, 300.0),
    )
    assert found.startswith(
        "For a first epoch file (torch-iterable, 10 s) and mount (torch-map, 10.1 s) cannot be "
        "told apart as the best; from the second one on file (torch-map, 2,000 samples/s) is "
        "the best"
    )
