"""Labels of trials and of their epochs, from what was seen."""

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
seen = st.fixed_dictionaries(
    {
        "resident_before": st.none() | shares,
        "physical_ratio": st.none() | ratios,
        "sequential": st.booleans(),
        "data_bytes": sizes,
        "memory_bytes": sizes,
        "file_system": file_systems,
    }
)


def judged(asked: str = "cold", **changes: Any) -> Cold:
    """A trial that was cold beyond doubt, except for ``changes``."""
    proof = {
        "resident_before": 0.0,
        "physical_ratio": 1.0,
        "sequential": True,
        "data_bytes": 10**9,
        "memory_bytes": 10**9,
        "file_system": "ext4",
    }
    return judge(requested=asked, **{**proof, **changes})


def not_counted(saw: dict[str, Any]) -> bool:
    """Whether the kernel counts no physical bytes on this file system."""
    return bool(saw["file_system"] == "fuse.sshfs" and saw["physical_ratio"] == 0)


@given(seen)
def test_cold_is_never_said_without_its_proof(saw: dict[str, Any]) -> None:
    """Nothing resident, and physical bytes for what was read from end to end; else there is a why.

    Warm and direct keep their names: doubts are said beside them.
    """
    cold = judge(requested="cold", **saw)
    assert (cold.asked, cold.resident_before) == ("cold", saw["resident_before"])
    assert cold.physical_ratio == (None if not_counted(saw) else saw["physical_ratio"])
    assert cold.label == ("warm" if cold.why else "cold")
    if cold.label == "cold":
        assert cold.resident_before is not None
        assert cold.resident_before <= 0.01
        assert saw["file_system"] not in IN_MEMORY
        assert cold.physical_ratio is None or cold.physical_ratio >= 0.95
        assert cold.physical_ratio is not None or not saw["sequential"]
    for asked in ("warm", "direct"):
        assert judge(requested=asked, **saw).label == asked


@given(saw=seen, resident=shares, ratio=ratios)
def test_less_proof_never_makes_a_trial_colder(
    saw: dict[str, Any], resident: float, ratio: float
) -> None:
    """More resident pages, or fewer physical bytes, cannot turn warm into cold."""
    assume(not not_counted(saw))
    better = {**saw, "resident_before": min(resident, saw["resident_before"] or 0.0)}
    if saw["physical_ratio"] is not None:
        better["physical_ratio"] = max(ratio, saw["physical_ratio"])
    if judge(requested="cold", **saw).label == "cold":
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
    """The kernel counts no physical bytes there, and the server's cache cannot be seen."""
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
    """Read-ahead moves more than is asked for; without a count residency is enough."""
    assert judged() == Cold("cold", "cold", 0.0, 1.0, cache_resident=True)
    assert judged(sequential=False, physical_ratio=7.5).label == "cold"
    assert judged(sequential=False, physical_ratio=None).label == "cold"


@pytest.mark.parametrize(
    ("data_bytes", "memory_bytes", "fits"), [(499, 100, True), (500, 100, False), (1, 0, None)]
)
def test_five_times_the_memory_is_honest(
    data_bytes: int, memory_bytes: int, fits: bool | None
) -> None:
    """Below that some of the data is still cached when the next epoch begins."""
    assert judged(data_bytes=data_bytes, memory_bytes=memory_bytes).cache_resident is fits


@pytest.mark.parametrize(
    ("asked", "changes", "why"),
    [
        ("warm", {"resident_before": 1.0, "physical_ratio": 0.4}, "40 %"),
        ("warm", {"resident_before": 1.0, "physical_ratio": 0.01}, ""),
        ("warm", {"resident_before": 0.2, "physical_ratio": 0.0}, "only 20 %"),
        ("direct", {"physical_ratio": 0.0, "file_system": "fuse"}, "fuse"),
        ("direct", {}, ""),
    ],
)
def test_doubts_about_warm_and_direct_trials(asked: str, changes: dict[str, Any], why: str) -> None:
    """Data that were not all in memory; a file system with a cache in spite of O_DIRECT."""
    reasons = judged(asked, **changes).why
    assert why in reasons
    assert bool(why) == bool(reasons)


def test_a_store_is_not_judged() -> None:
    """Nobody outside can see a server's cache."""
    store = judge_remote("cold")
    assert (store.asked, store.label) == ("cold", "server cache unknown")
    assert combine_epochs([store, store], [1, 1]) == store


COLD = Cold("cold", "cold", 0.0, 1.0, True, limits=("no root",))
WARM = Cold("cold", "warm", 0.4, 0.6, True, "40 % of the pages were resident before")
HOT = Cold("warm", "warm", 1.0, 0.0)
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
        (
            [HOT, replace(HOT, physical_ratio=0.3, why="30 %")],
            "warm",
            1.0,
            0.15,
            "epoch 2 of 2: 30 %",
        ),
    ],
)
def test_epochs_together(
    epochs: list[Cold], label: str, resident: float, ratio: float, why: str
) -> None:
    """Cold is what was cold in every epoch; later ones may be left to the page cache."""
    coldness = combine_epochs(epochs, [10] * len(epochs))
    assert (coldness.label, coldness.asked, coldness.why) == (
        label,
        epochs[0].asked,
        why,
    )
    assert coldness.resident_before == resident
    assert coldness.physical_ratio == pytest.approx(ratio)
    assert combine_epochs(epochs[:1], [10]) is epochs[0]


def test_reading_ahead_makes_up_for_nothing() -> None:
    """Half of an epoch's samples are taken and all of its shards read: the next is from memory."""
    ahead = replace(COLD, physical_ratio=1.6)
    assert combine_epochs([ahead, KEPT], [10, 10]).physical_ratio == 0.5
    amplified = replace(COLD, physical_ratio=1.6, amplification=1.6)
    kept = replace(KEPT, amplification=0.0)
    coldness = combine_epochs([amplified, kept], [10, 10])
    assert (coldness.physical_ratio, coldness.amplification) == (0.8, 0.8)
    assert combine_epochs([ahead], [10]).physical_ratio == 1.6


@pytest.mark.parametrize("unknown", ["resident_before", "physical_ratio", "amplification"])
def test_what_one_epoch_does_not_know_is_unknown(unknown: str) -> None:
    """Nothing is made up for it."""
    changed = replace(COLD, amplification=1.0)
    untold = Cold(**{**asdict(changed), unknown: None})
    assert getattr(combine_epochs([changed, untold], [1, 1]), unknown) is None
    assert getattr(combine_epochs([changed, changed], [1, 1]), unknown) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from([COLD, WARM, KEPT]), st.integers(1, 100)), min_size=1, max_size=6
    )
)
def test_cold_is_never_claimed_for_more_than_was_shown(
    epochs: list[tuple[Cold, int]],
) -> None:
    """Its label needs every epoch's; its ratio lies within theirs; limits are said once."""
    colds, samples = [cold for cold, _ in epochs], [count for _, count in epochs]
    coldness = combine_epochs(colds, samples)
    assert (coldness.label == "cold") == all(cold.label == "cold" for cold in colds)
    ratios = [cold.physical_ratio or 0.0 for cold in colds]
    assert coldness.physical_ratio is not None
    assert min(ratios) - 1e-9 <= coldness.physical_ratio <= max(ratios) + 1e-9
    assert len(set(coldness.limits)) == len(coldness.limits)
