"""The run in one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iobench.epoch_coldness import FIRST_EPOCH_COLD
from iobench.summary import summarise
from iobench.summary.verdict import sentence
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import COLD, UNPROVED, loop, loops, one, result
from tests.iobench.summary.test_supplies import disk, get


def verdict(*trials: Any) -> str:
    """What is said of these trials."""
    found: str = summarise(result([trial for part in trials for trial in part]))["verdict"]
    return found


GOT = "The training loop gets"
COULD = "of what this device can consume"


@pytest.mark.parametrize(
    ("t1", "t3", "t2", "said"),
    [
        (4.0, 4.0, 4.0, f"{GOT} 100 % {COULD}: its data keeps up."),
        (4.0, 4.0, 4.2, f"{GOT} 95 % {COULD}: its data keeps up."),
        (4.0, 8.0, 8.0, f"{GOT} 50 % {COULD}; decoding and augmenting cost the rest."),
        (4.0, 9.0, 8.0, f"{GOT} 50 % {COULD}; decoding and augmenting cost the rest."),
        (4.0, 4.0, 8.0, f"{GOT} 50 % {COULD}; waiting for the disk costs the rest."),
        (
            4.0,
            6.0,
            10.0,
            f"{GOT} 40 % {COULD}; reading and decoding cost the rest: preparation 20 % of the "
            "time, waiting for the disk 40 %.",
        ),
    ],
)
def test_verdict_of_a_training_loop(t1: float, t3: float, t2: float, said: str) -> None:
    """Fine, bound by decoding, by the disk, by both."""
    assert verdict(loops([t1], [t3], [t2])) == said


def test_a_stall_that_cannot_be_told_from_none_is_not_accused() -> None:
    """The disk was faster than the page cache in one of the repeats."""
    said = verdict(loops([4.0] * 3, [8.0, 8.0, 9.0], [8.8, 8.8, 8.8]))
    assert said == f"{GOT} 45 % {COULD}; decoding and augmenting cost the rest."
    every = verdict(loops([4.0] * 3, [8.0, 8.0, 8.0], [8.8, 8.8, 8.8]))
    assert "waiting for the disk 9 %" in every


def test_the_smaller_stall_is_not_blamed_for_a_noisy_larger_one() -> None:
    """One outlier of six takes the proof from the larger; it does not make it small."""
    said = verdict(loops([6.5] * 6, [7.0] * 5 + [10.5], [10.0] * 6))
    assert said == f"{GOT} 65 % {COULD}; reading and decoding cost the rest."
    mirrored = verdict(loops([5.0] * 6, [9.5] * 6, [10.0] * 5 + [9.4]))
    assert mirrored.endswith("decoding and augmenting cost the rest.")


def test_without_a_cold_run_nothing_is_said_of_the_disk() -> None:
    """The rest is not split."""
    said = f"{GOT} 50 % {COULD}; reading and decoding cost the rest."
    assert verdict(loops([4.0], [8.0])) == said


def test_emulated_is_said() -> None:
    """On every figure, so here too."""
    said = verdict(loops([4.0], [4.0], [4.0], emulated=True))
    assert said.startswith("The training loop, on an emulated device, gets 100 %")


def test_a_disk_that_was_not_shown_cold_is_not_accused() -> None:
    """It is storage, with the doubt beside it."""
    said = verdict(loops([4.0], [4.0]), loop("cold", [8.0], cold=UNPROVED))
    assert "waiting for storage, which was not shown to be cold, costs the rest" in said


def test_the_store_is_named() -> None:
    """Where data came from a store, the store is what was waited for."""
    said = verdict(loops([4.0], [4.0], [4.0]), loop("store", [8.0]))
    assert "waiting for the object store costs the rest" in said


def test_the_first_loop_with_a_ceiling_speaks() -> None:
    """A group without one is passed over; of several it says which one is meant."""
    said = verdict(loops([], [8.0], group="a"), loops([4.0], [8.0], group="b"))
    assert said.startswith("The training loop (b) gets 50 %")


def test_without_any_ceiling_the_first_of_all_speaks() -> None:
    """By its rate, and by its name."""
    said = verdict(loops([], [8.0], group="a"), loops([], [4.0], group="b"))
    assert said.startswith("The training loop (a) gets 12 samples/s; ")


def test_without_resident_data_the_rate_is_said() -> None:
    """A loop whose ceiling was not measured, or failed, is a loop nevertheless."""
    said = verdict(loops([None], [8.0], [10.0]))
    assert said == f"{GOT} 10 samples/s; what its device can consume was not measured."


def test_one_repeat_does_not_differ_from_itself() -> None:
    """Noise is spoken of where there is something to compare."""
    assert verdict(loops([4.0], [3.0])) == f"{GOT} 133 % {COULD}: its data keeps up."
    noisy = verdict(loops([4.0, 4.0], [3.0, 3.0]))
    assert noisy.endswith("its data keeps up, and repeats differ by more than it waits.")


def test_the_summarys_figures_are_those_of_the_sentence() -> None:
    """The loop that speaks is the one whose utilisations stand beside it."""
    trials = [*loops([], [8.0], group="a", au_mlperf=0.9), *loops([4.0], [8.0], group="b")]
    summary = summarise(result(trials))
    assert (summary["au_ceiling"], summary["au_mlperf"]) == (0.5, 0.5)
    assert summary["samples_per_second"] == 100 / 8


def test_a_cold_first_epoch_is_no_cold_loop() -> None:
    """What storage costs is that of the first epoch alone."""
    first = Cold("cold", FIRST_EPOCH_COLD, 0.0, 0.5)
    said = verdict(loop("synthetic", [4.0]), loop("warm", [4.0]), loop("cold", [8.0], cold=first))
    assert said == (
        f"{GOT} 50 % {COULD}; waiting for the disk, cold in the first epoch alone, costs the rest."
    )


def test_a_terminal_has_the_badge_too() -> None:
    """Beside the sentence; nothing where no loop was measured."""
    summary = summarise(result(loops([4.0], [4.0], [8.0])))
    assert sentence(summary) == f"{summary['verdict']} [cold 100 %]"
    unproved = summarise(result(loop("cold", [8.0], cold=UNPROVED)))
    assert sentence(unproved).endswith(" [asked cold, not proved: half was resident]")
    assert sentence(summarise(result([]))) == "Nothing could be measured."


class TestWithoutTraining:
    RAW = one(  # an entry with data
        "loader", {"loader": "raw", "data": "shards@disk"}, samples_per_s=1234.0
    )

    def test_the_fastest_loader(self) -> None:
        """By its median, with the data that it reads; of those that decode."""
        slow = one("loader", {"loader": "torch-map", "data": "files@disk"}, samples_per_s=99.0)
        encoded = {"loader": "torch-map", "data": "files@disk", "decode": False}
        bytes_only = one("loader", encoded, samples_per_s=999.0)
        null = one("loader", {"loader": "null", "data": ""}, samples_per_s=1e9)
        said = verdict([slow, bytes_only, null, self.RAW], [disk("nvme", 4096, 9.0)])
        assert said == "The fastest loader is torch-map from files@disk: 99 samples/s."

    def test_reading_alone(self) -> None:
        """Where nothing decodes, that is said."""
        said = verdict([self.RAW], [])
        assert said == "Reading without decoding, raw from shards@disk gives 1,234 samples/s."

    def test_the_object_store(self) -> None:
        """Its peak, by client and operation."""
        said = verdict([get(1000, 1, 90.0), get(1000, 4, 450.0)], [disk("nvme", 4096, 9.0)])
        assert said == "The object store s3 gives at most 450 MB/s (boto3, get)."

    def test_the_disk(self) -> None:
        """Its best read, before any write."""
        said = verdict([disk("a", 4096, 100.0), disk("b", 4096, 1600.0)])
        assert said == "The disk b gives at most 1,600 MB/s (sequential read, direct)."
        written = verdict([disk("a", 4096, 100.0), disk("b", 4096, 900.0, operation="write")])
        assert written.startswith("The disk a gives")
        assert verdict([disk("b", 4096, 900.0, operation="write")]).startswith("The disk b")

    def test_memory_is_no_disk(self) -> None:
        """A warm read is faster than any disk, and says nothing of it."""
        warm = disk("a", 4096, 9000.0, cache="warm")
        assert verdict([disk("a", 4096, 100.0), warm]).startswith("The disk a gives at most 100 ")
        assert verdict([warm]).startswith("The page cache above a gives at most 9,000 MB/s")

    def test_cold_must_have_been_shown(self) -> None:
        """What was asked cold and is labelled warm is told as warm."""
        asked = replace(disk("a", 4096, 900.0, cache="cold"), cold=UNPROVED)
        assert verdict([asked]) == (
            "The page cache above a gives at most 900 MB/s (sequential read, warm)."
        )
        shown = replace(disk("a", 8192, 90.0, cache="cold"), cold=COLD)
        assert verdict([asked, shown]).endswith("at most 90 MB/s (sequential read, cold).")

    def test_layouts_alone(self) -> None:
        """There is a figure, if none for this sentence."""
        params = {"data": "files@disk", "access": "files", "cache": "warm", "parallelism": 1}
        assert verdict([one("layout", params, samples_per_s=1.0)]).startswith("Measured;")

    def test_nothing(self) -> None:
        """Neither trials nor failed ones can be measured by."""
        assert verdict() == verdict(loops([None], [None])) == "Nothing could be measured."


seconds = st.none() | st.floats(0.1, 100)
columns = st.lists(st.tuples(seconds, seconds, seconds), max_size=5)


@given(columns, st.booleans())
def test_there_is_always_one_sentence(
    given_s: list[tuple[float | None, ...]], emulated: bool
) -> None:
    """Whatever failed, the summary is JSON without NaN and its verdict one sentence."""
    device, warm, cold = zip(*given_s, strict=True) if given_s else ((), (), ())
    made = result(loops(device, warm, cold, emulated=emulated))
    summary = summarise(made)
    assert summary["verdict"].endswith(".")
    assert summary["verdict"].count(". ") == 0
    assert replace(made, summary=summary).to_json()


def test_the_first_loops_figures_stand_at_the_top() -> None:
    """For whoever reads ``result.json`` with a script; None where there is no loop."""
    summary = summarise(result(loops([4.0], [6.0], [10.0])))
    assert summary["au_ceiling"] == pytest.approx(0.4)
    assert summary["stall_fraction"] == pytest.approx(0.6)
    assert summary["samples_per_second"] == 10
    assert summary["au_mlperf"] == 0.5
    nothing: list[Trial] = []
    empty = summarise(result(nothing))
    assert empty["au_ceiling"] is empty["samples_per_second"] is None
