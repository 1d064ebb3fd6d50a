"""The labels of trials and of their epochs follow from what was measured."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iobench.machine.coldness import (
    IN_MEMORY,
    NOT_PREPARED,
    combine_epochs,
    judge,
    judge_remote,
)
from iobench.results.badges import badge
from iobench.results.trial import FIRST_EPOCH_COLD, HOST_ONLY, Cold

shares = st.floats(0, 1)
ratios = st.floats(0, 20)
sizes = st.integers(0, 2**50)
file_systems = st.sampled_from(["", "ext4", "xfs", "overlay", "tmpfs", "fuse.sshfs"])
measurements = st.fixed_dictionaries(
    {
        "resident_before": st.none() | shares,
        "physical_ratio": st.none() | ratios,
        "sequential": st.booleans(),
        "data_bytes": sizes,
        "memory_bytes": sizes,
        "file_system": file_systems,
    }
)


def judged(requested: str = "cold", **changes: Any) -> Cold:
    """Return the judgement of a trial that was proved cold, except for ``changes``."""
    proof = {
        "resident_before": 0.0,
        "physical_ratio": 1.0,
        "sequential": True,
        "data_bytes": 10**9,
        "memory_bytes": 10**9,
        "file_system": "ext4",
    }
    return judge(requested=requested, **{**proof, **changes})


def not_counted(measured: dict[str, Any]) -> bool:
    """Return whether the kernel counts no physical bytes on this file system."""
    return bool(measured["file_system"] == "fuse.sshfs" and measured["physical_ratio"] == 0)


@given(measurements)
def test_cold_is_never_said_without_its_proof(measured: dict[str, Any]) -> None:
    """A trial is cold if nothing was resident and the bytes came from storage, or has a reason.

    Physical bytes are needed for sequential reads only. Warm and direct trials keep their labels.
    """
    cold = judge(requested="cold", **measured)
    assert (cold.asked, cold.resident_before) == ("cold", measured["resident_before"])
    assert cold.physical_ratio == (None if not_counted(measured) else measured["physical_ratio"])
    assert cold.label == ("warm" if cold.why else "cold")
    if cold.label == "cold":
        assert cold.resident_before is not None
        assert cold.resident_before <= 0.01
        assert measured["file_system"] not in IN_MEMORY
        assert cold.physical_ratio is None or cold.physical_ratio >= 0.95
        assert cold.physical_ratio is not None or not measured["sequential"]
    for requested in ("warm", "direct"):
        assert judge(requested=requested, **measured).label == requested


@given(measured=measurements, resident=shares, ratio=ratios)
def test_less_proof_never_makes_a_trial_colder(
    measured: dict[str, Any], resident: float, ratio: float
) -> None:
    """More resident pages, or fewer physical bytes, cannot turn warm into cold."""
    assume(not not_counted(measured))
    better = {**measured, "resident_before": min(resident, measured["resident_before"] or 0.0)}
    if measured["physical_ratio"] is not None:
        better["physical_ratio"] = max(ratio, measured["physical_ratio"])
    if judge(requested="cold", **measured).label == "cold":
        assert judge(requested="cold", **better).label == "cold"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"resident_before": 0.25}, "25 % of the pages were resident before on ext4"),
        ({"resident_before": None}, "the residency is unknown on ext4"),
        ({"physical_ratio": 0.5}, "only 50 % of the bytes read came from storage on ext4"),
        ({"physical_ratio": None}, "physical bytes are not counted on ext4"),
        ({"file_system": "tmpfs"}, "tmpfs is memory"),
        ({"physical_ratio": 0.0, "sequential": False, "file_system": "overlay"}, "on overlay"),
    ],
)
def test_why_it_is_warm(changes: dict[str, Any], why: str) -> None:
    """The reason names the figure and the file system."""
    cold = judged(**changes)
    assert cold.label == "warm"
    assert why in cold.why


@pytest.mark.parametrize("file_system", ["nfs4", "lustre", "fuse.mountpoint-s3", "fuse.unheard"])
def test_cold_behind_a_server_is_cold_on_this_host_alone(file_system: str) -> None:
    """The kernel counts no physical bytes there, and the cache of the server is unknown."""
    uncounted: dict[str, Any] = {"physical_ratio": 0.0, "file_system": file_system}
    records = judged(sequential=False, **uncounted)
    assert records.label == "cold"
    assert records.limits == (HOST_ONLY,)
    assert badge([records]) == "cold on this host, by residency; server cache unknown"
    shards = judged(**uncounted)
    assert (shards.label, shards.limits) == ("warm", ())
    assert shards.why == f"physical bytes are not counted on {file_system}"
    assert HOST_ONLY not in judged().limits


def test_random_reads_are_proved_by_residency() -> None:
    """Read-ahead moves more bytes than requested, so residency alone is the proof."""
    assert judged() == Cold("cold", "cold", 0.0, 1.0, cache_resident=True)
    assert judged(sequential=False, physical_ratio=7.5).label == "cold"
    assert judged(sequential=False, physical_ratio=None).label == "cold"


@pytest.mark.parametrize(
    ("data_bytes", "memory_bytes", "fits"), [(499, 100, True), (500, 100, False), (1, 0, None)]
)
def test_five_times_the_memory_is_honest(
    data_bytes: int, memory_bytes: int, fits: bool | None
) -> None:
    """Smaller data are still partly cached when the next epoch begins."""
    assert judged(data_bytes=data_bytes, memory_bytes=memory_bytes).cache_resident is fits


@pytest.mark.parametrize(
    ("requested", "changes", "why"),
    [
        ("warm", {"resident_before": 1.0, "physical_ratio": 0.4}, "40 %"),
        ("warm", {"resident_before": 1.0, "physical_ratio": 0.01}, ""),
        ("warm", {"resident_before": 0.2, "physical_ratio": 0.0}, "only 20 %"),
        ("direct", {"physical_ratio": 0.0, "file_system": "fuse"}, "fuse"),
        ("direct", {}, ""),
    ],
)
def test_doubts_about_warm_and_direct_trials(
    requested: str, changes: dict[str, Any], why: str
) -> None:
    """The reasons are data that were not in memory, and a cache in spite of O_DIRECT."""
    reasons = judged(requested, **changes).why
    assert why in reasons
    assert bool(why) == bool(reasons)


def test_a_store_is_not_judged() -> None:
    """The cache of a store is unknown, since nobody outside can see it."""
    store = judge_remote("cold")
    assert (store.asked, store.label) == ("cold", "server cache unknown")
    assert combine_epochs([store, store], [1, 1]) == store


COLD = Cold("cold", "cold", 0.0, 1.0, True, limits=("no root",))
WARM = Cold("cold", "warm", 0.4, 0.6, True, "40 % of the pages were resident before")
HOT = Cold("warm", "warm", 1.0, 0.0)
LESS_HOT = replace(HOT, physical_ratio=0.3, why="30 %")
KEPT = Cold(NOT_PREPARED, "warm", 1.0, 0.0, True, "100 % of the pages were resident before")


@pytest.mark.parametrize(
    ("epochs", "label", "resident", "ratio", "why"),
    [
        ([COLD, replace(COLD, resident_before=0.005)], "cold", 0.005, 1.0, ""),
        ([COLD, WARM, COLD], "warm", 0.4, 2.6 / 3, f"epoch 2 of 3: {WARM.why}"),
        ([WARM, COLD], "warm", 0.4, 0.8, WARM.why),
        ([COLD, KEPT], FIRST_EPOCH_COLD, 0.0, 0.5, f"epoch 2 of 2: {KEPT.why}"),
        ([COLD, replace(COLD, asked=NOT_PREPARED)], "cold", 0.0, 1.0, ""),
        ([WARM, KEPT], "warm", 0.4, 0.3, WARM.why),
        ([HOT, HOT], "warm", 1.0, 0.0, ""),
        ([HOT, LESS_HOT], "warm", 1.0, 0.15, "epoch 2 of 2: 30 %"),
    ],
)
def test_epochs_together(
    epochs: list[Cold], label: str, resident: float, ratio: float, why: str
) -> None:
    """A trial is cold if all epochs were; later ones may be left to the page cache."""
    coldness = combine_epochs(epochs, [10] * len(epochs))
    assert (coldness.label, coldness.why) == (label, why)
    assert coldness.asked == epochs[0].asked
    assert coldness.resident_before == resident
    assert coldness.physical_ratio == pytest.approx(ratio)
    assert combine_epochs(epochs[:1], [10]) is epochs[0]


def test_reading_ahead_makes_up_for_nothing() -> None:
    """Bytes read ahead in one epoch do not count for the next one, which finds them in memory."""
    ahead = replace(COLD, physical_ratio=1.6)
    assert combine_epochs([ahead, KEPT], [10, 10]).physical_ratio == 0.5
    amplified = replace(COLD, physical_ratio=1.6, amplification=1.6)
    kept = replace(KEPT, amplification=0.0)
    coldness = combine_epochs([amplified, kept], [10, 10])
    assert (coldness.physical_ratio, coldness.amplification) == (0.8, 0.8)
    assert combine_epochs([ahead], [10]).physical_ratio == 1.6


@pytest.mark.parametrize("unknown", ["resident_before", "physical_ratio", "amplification"])
def test_figures_that_one_epoch_lacks_are_unknown(unknown: str) -> None:
    """A figure that one epoch lacks is unknown for all epochs together."""
    changed = replace(COLD, amplification=1.0)
    unmeasured = Cold(**{**asdict(changed), unknown: None})
    assert getattr(combine_epochs([changed, unmeasured], [1, 1]), unknown) is None
    assert getattr(combine_epochs([changed, changed], [1, 1]), unknown) is not None


counted_epochs = st.tuples(st.sampled_from([COLD, WARM, KEPT]), st.integers(1, 100))


@given(st.lists(counted_epochs, min_size=1, max_size=6))
def test_cold_is_never_claimed_for_more_than_was_shown(
    epochs: list[tuple[Cold, int]],
) -> None:
    """The ratio lies within those of the epochs, and each limit is listed once."""
    colds, samples = [cold for cold, _ in epochs], [count for _, count in epochs]
    coldness = combine_epochs(colds, samples)
    assert (coldness.label == "cold") == all(cold.label == "cold" for cold in colds)
    ratios = [cold.physical_ratio or 0.0 for cold in colds]
    assert coldness.physical_ratio is not None
    assert min(ratios) - 1e-9 <= coldness.physical_ratio <= max(ratios) + 1e-9
    assert len(set(coldness.limits)) == len(coldness.limits)
