"""Labels of trials and of their epochs, from what was seen."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.machine.coldness import (
    FIRST_EPOCH_COLD,
    IN_MEMORY,
    LEFT,
    judge,
    judge_remote,
    whole,
)
from iobench.trial import Cold

pytestmark = pytest.mark.slow

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
    return judge(asked=asked, **{**proof, **changes})


@given(seen)
def test_cold_is_never_said_without_its_proof(saw: dict[str, Any]) -> None:
    """Cold means nothing resident, and physical bytes for what was read from end to end."""
    cold = judge(asked="cold", **saw)
    assert cold.label in ("cold", "warm")
    if cold.label == "cold":
        assert cold.resident_before is not None
        assert cold.resident_before <= 0.01
        assert saw["file_system"] not in IN_MEMORY
        assert cold.physical_ratio is None or cold.physical_ratio >= 0.95
        assert cold.physical_ratio is not None or not saw["sequential"]


@given(seen)
def test_what_was_not_shown_cold_is_called_warm_and_says_why(saw: dict[str, Any]) -> None:
    """There is a reason exactly where the label is not what was asked."""
    cold = judge(asked="cold", **saw)
    assert bool(cold.why) == (cold.label == "warm")


@given(saw=seen, resident=shares, ratio=ratios)
def test_less_proof_never_makes_a_trial_colder(
    saw: dict[str, Any], resident: float, ratio: float
) -> None:
    """More resident pages, or fewer physical bytes, cannot turn warm into cold."""
    better = {**saw, "resident_before": min(resident, saw["resident_before"] or 0.0)}
    if saw["physical_ratio"] is not None:
        better["physical_ratio"] = max(ratio, saw["physical_ratio"])
    if judge(asked="cold", **saw).label == "cold":
        assert judge(asked="cold", **better).label == "cold"


@given(seen)
def test_warm_and_direct_keep_their_names(saw: dict[str, Any]) -> None:
    """Only cold has to be proved; doubts about the others are said beside them."""
    assert judge(asked="warm", **saw).label == "warm"
    assert judge(asked="direct", **saw).label == "direct"


@given(seen)
def test_what_was_seen_is_kept(saw: dict[str, Any]) -> None:
    """The figures behind the label can be read in the result."""
    cold = judge(asked="cold", **saw)
    assert (cold.asked, cold.resident_before, cold.physical_ratio) == (
        *("cold", saw["resident_before"]),
        saw["physical_ratio"],
    )


def test_proved() -> None:
    """Nothing resident and every byte from storage is cold."""
    assert judged() == Cold("cold", "cold", 0.0, 1.0, cache_resident=True)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"resident_before": 0.25}, "25 % of the pages were resident before on ext4"),
        ({"resident_before": None}, "what is resident cannot be told on ext4"),
        ({"physical_ratio": 0.5}, "only 50 % of the bytes read came from storage on ext4"),
        ({"physical_ratio": None}, "physical bytes are not counted on ext4"),
        ({"file_system": "tmpfs"}, "tmpfs lies in memory"),
        ({"physical_ratio": 0.0, "sequential": False, "file_system": "overlay"}, "on overlay"),
    ],
)
def test_why_it_is_warm(changes: dict[str, Any], why: str) -> None:
    """The reason names the figure and the file system."""
    cold = judged(**changes)
    assert cold.label == "warm"
    assert why in cold.why


def test_random_reads_are_proved_by_residency() -> None:
    """Read-ahead moves more than is asked for; without a count residency is enough."""
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


def test_a_warm_trial_that_met_the_disk_says_so() -> None:
    """Data that does not fit in memory is not all warm."""
    assert "40 %" in judged("warm", resident_before=1.0, physical_ratio=0.4).why
    assert judged("warm", resident_before=1.0, physical_ratio=0.01).why == ""


def test_a_warm_trial_that_did_not_begin_warm_says_so() -> None:
    """What is not in memory when it begins comes from storage."""
    assert "only 20 %" in judged("warm", resident_before=0.2, physical_ratio=0.0).why


def test_direct_reads_that_no_device_answered_say_so() -> None:
    """A FUSE or network file system may accept O_DIRECT and have a cache all the same."""
    assert "fuse" in judged("direct", physical_ratio=0.0, file_system="fuse").why
    assert judged("direct").why == ""


def test_a_store_is_not_judged() -> None:
    """Nobody outside can see a server's cache."""
    assert judge_remote("cold").label == "server cache unknown"
    assert judge_remote("cold").asked == "cold"


COLD = Cold("cold", "cold", 0.0, 1.0, True, limits=("no root",))
WARM = Cold("cold", "warm", 0.4, 0.6, True, "40 % of the pages were resident before")
KEPT = Cold(LEFT, "warm", 1.0, 0.0, True, "100 % of the pages were resident before")


def test_one_epoch_is_the_trial() -> None:
    """Nothing is added to it."""
    assert whole([WARM], [10]) is WARM


def test_cold_is_what_was_cold_in_every_epoch() -> None:
    """One that was not takes it from all, by its number."""
    found = whole([COLD, replace(COLD, resident_before=0.005)], [10, 10])
    assert (found.label, found.why, found.resident_before) == ("cold", "", 0.005)
    found = whole([COLD, WARM, COLD], [10, 10, 10])
    assert (found.label, found.asked) == ("warm", "cold")
    assert found.why == "epoch 2 of 3: 40 % of the pages were resident before"
    assert whole([WARM, COLD], [10, 10]).label == "warm"


def test_later_epochs_may_be_left_to_the_page_cache() -> None:
    """The first alone was to be cold: that is what it is called."""
    found = whole([COLD, KEPT], [10, 10])
    assert (found.label, found.physical_ratio, found.resident_before) == (
        FIRST_EPOCH_COLD,
        0.5,
        0.0,
    )
    assert found.why == "epoch 2 of 2: 100 % of the pages were resident before"


def test_reading_ahead_makes_up_for_nothing() -> None:
    """Half of an epoch's samples are taken and all of its shards read: the next is from memory."""
    ahead = replace(COLD, physical_ratio=1.6)
    assert whole([ahead, KEPT], [10, 10]).physical_ratio == 0.5
    amplified = replace(COLD, physical_ratio=1.6, amplification=1.6)
    kept = replace(KEPT, amplification=0.0)
    found = whole([amplified, kept], [10, 10])
    assert (found.physical_ratio, found.amplification) == (0.8, 0.8)
    assert whole([ahead], [10]).physical_ratio == 1.6


def test_what_no_cache_could_keep_is_cold_throughout() -> None:
    """Later epochs of data that do not fit in memory come from storage too."""
    assert whole([COLD, replace(COLD, asked=LEFT)], [10, 10]).label == "cold"


def test_a_first_epoch_that_was_not_shown_cold_is_warm() -> None:
    """Whatever the later ones are."""
    found = whole([WARM, KEPT], [10, 10])
    assert (found.label, found.why) == ("warm", WARM.why)


def test_warm_epochs_have_the_first_doubt() -> None:
    """Warm is not warm where an epoch came from storage."""
    warm = Cold("warm", "warm", 1.0, 0.0)
    partly = replace(warm, physical_ratio=0.3, why="30 % of the bytes read came from storage")
    assert whole([warm, warm], [10, 10]).why == ""
    found = whole([warm, partly], [10, 10])
    assert (found.label, found.physical_ratio) == ("warm", 0.15)
    assert found.why.startswith("epoch 2 of 2: 30 %")


def test_a_store_stays_unknown() -> None:
    """Its word is said once."""
    store = Cold("store", "server cache unknown", why="cannot be seen")
    assert whole([store, store], [1, 1]) == store


@pytest.mark.parametrize("unknown", ["resident_before", "physical_ratio", "amplification"])
def test_what_one_epoch_does_not_know_is_unknown(unknown: str) -> None:
    """Nothing is made up for it."""
    told = replace(COLD, amplification=1.0)
    untold = Cold(**{**asdict(told), unknown: None})
    assert getattr(whole([told, untold], [1, 1]), unknown) is None
    assert getattr(whole([told, told], [1, 1]), unknown) is not None


@given(
    st.lists(
        st.tuples(st.sampled_from([COLD, WARM, KEPT]), st.integers(1, 100)), min_size=1, max_size=6
    )
)
def test_cold_is_never_claimed_for_more_than_was_shown(
    epochs: list[tuple[Cold, int]],
) -> None:
    """Its label needs every epoch's; its ratio lies within theirs; limits are said once."""
    colds, samples = [one for one, _ in epochs], [count for _, count in epochs]
    found = whole(colds, samples)
    assert (found.label == "cold") == all(one.label == "cold" for one in colds)
    ratios = [one.physical_ratio or 0.0 for one in colds]
    assert found.physical_ratio is not None
    assert min(ratios) - 1e-9 <= found.physical_ratio <= max(ratios) + 1e-9
    assert len(set(found.limits)) == len(found.limits)
