"""Who may write a split together with whom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataprep.errors import LeaseLost, OutputConflict
from dataprep.job.leases import Leases, Permit
from dataprep.plan import Part
from dataprep.stores.local import LocalStore
from dataprep.stores.memory import MemoryStore
from dataprep.stores.protocol import Holder, Lease

Runs = list[tuple[str, Part | None]]


@pytest.fixture(autouse=True)
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No time passes; how long it would have been."""
    durations: list[float] = []
    monkeypatch.setattr("time.sleep", durations.append)
    return durations


class Kept:
    """A lease in memory."""

    def __init__(self, keeper: Keeper, key: str) -> None:
        self._keeper, self._key = keeper, key
        self.why = ""

    def lost(self) -> str:
        return self.why

    def release(self) -> None:
        self._keeper.held.pop(self._key, None)


class Keeper(MemoryStore):
    """Leases in memory, of which those in ``others`` are somebody else's."""

    def __init__(self) -> None:
        super().__init__("memory://leases")
        self.held: dict[str, Kept] = {}
        self.others: dict[str, list[Holder]] = {}

    def lease(self, key: str, said: str) -> Lease | Holder | None:
        if states := self.others.get(key):
            return states[0]
        if key in self.held:
            return Holder(key, said, "", None)
        self.held[key] = Kept(self, key)
        return self.held[key]

    def holders(self, prefix: str) -> Iterator[Holder]:
        """Each time somebody asks, those of others are a state further."""
        for key in [*self.held, *self.others]:
            if not key.startswith(prefix):
                continue
            if key in self.held:
                yield Holder(key, f"has {key}", "", None)
            elif states := self.others[key]:
                states.pop(0)
                yield from states[:1]


def begun(store: Keeper, part: Part | None = None) -> Leases:
    """A run with its leases on ``train``."""
    leases = Leases(store, part, lambda line: None)
    leases.take(["train"])
    return leases


def clash(one: Part | None, other: Part | None) -> bool:
    """What the rule says."""
    return one is None or other is None or one == other or one.count != other.count


parts = st.none() | st.integers(1, 3).flatmap(
    lambda count: st.builds(Part, st.integers(0, count - 1), st.just(count))
)


@given(runs=st.lists(parts, min_size=2, max_size=5))
def test_only_parts_of_one_job_write_together(runs: list[Part | None]) -> None:
    """A run is let in if it goes with each of those that were, and refused otherwise."""
    store = Keeper()
    let_in: list[Part | None] = []
    for part in runs:
        if any(clash(part, other) for other in let_in):
            with pytest.raises(OutputConflict, match="another run is making"):
                begun(store, part)
        else:
            begun(store, part)
            let_in.append(part)
    assert len(store.held) == len(let_in)


def test_other_splits_do_not_matter() -> None:
    """Also one whose name begins as this one's does."""
    store = Keeper()
    begun(store)
    Leases(store, None, lambda line: None).take(["train2", "val"])
    assert set(store.held) == {"train", "train2", "val"}


def test_all_are_given_back_however_it_ends() -> None:
    """Those taken later too."""
    store = Keeper()

    def run() -> None:
        with Leases(store, None, lambda line: None) as leases:
            leases.take(["train"])
            leases.take(["train", "val"])
            assert set(store.held) == {"train", "val"}
            raise RuntimeError("over")

    with pytest.raises(RuntimeError, match="over"):
        run()
    assert store.held == {}


def test_a_holder_that_is_renewed_lives(slept: list[float]) -> None:
    """It is refused as soon as that shows."""
    store = Keeper()
    notes: list[str] = []
    store.others["train"] = [
        Holder("train", "split 'train'", "a", 110.0),
        Holder("train", "split 'train'", "a", 105.0),
        Holder("train", "split 'train'", "b", 120.0),
    ]
    with pytest.raises(OutputConflict, match="another run is making split 'train' in memory"):
        Leases(store, None, notes.append).take(["train"])
    assert slept == [5.0, 5.0]
    assert notes == [
        "memory://leases is held by a run that makes split 'train': waiting to see whether it "
        "lives, at most 110 s"
    ]


def test_one_that_is_not_renewed_is_outlasted(slept: list[float]) -> None:
    """Then its place is taken."""
    store = Keeper()
    store.others["train"] = [Holder("train", "it", "a", left_s) for left_s in (12.0, 7.0, 2.0)]
    begun(store)
    assert set(store.held) == {"train"}
    assert slept == [5.0, 5.0, 2.0]


def test_of_two_at_the_same_moment_the_later_name_gives_way() -> None:
    """A part before a whole job that came with it; the whole job then stays."""
    store = Keeper()
    store.others["train.0-of-2"] = [Holder("train.0-of-2", "part 0/2", "a", None)] * 2
    begun(store)
    assert set(store.held) == {"train"}


def test_what_is_lost_stops_the_run() -> None:
    """With the reason."""
    store = Keeper()
    leases = begun(store, Part(1, 2))
    leases.check()
    store.held["train.1-of-2"].why = "another run has taken it over"
    with pytest.raises(LeaseLost, match="part 1/2 of split 'train' is lost"):
        leases.check()


def test_a_lease_that_only_its_process_knows_of_gives_no_permit() -> None:
    """A store need not have another."""
    assert begun(Keeper()).permit("train") is None


def test_a_permit_says_why_it_ended() -> None:
    """In the words of the run itself."""

    class Gone:
        def lost(self) -> str:
            return "it is gone"

    with pytest.raises(LeaseLost, match=r"s3://b: the lease of split 'train' is lost \(it is gone"):
        Permit("s3://b", "split 'train'", Gone())()


def test_a_store_that_keeps_none_keeps_nobody_out() -> None:
    """Another package's may know nothing of it."""
    leases = Leases(MemoryStore("memory://plain"), None, lambda line: None)
    leases.take(["train"])
    leases.check()


def test_where_it_turns_out_so_it_is_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks."""
    notes: list[str] = []
    monkeypatch.setattr("dataprep.stores.local_leases.take", lambda path, said: None)
    Leases(LocalStore(str(tmp_path)), None, notes.append).take(["train"])
    assert notes == [
        f"nobody can be kept out of {tmp_path}: see to it that no other run writes there"
    ]


def test_what_a_holder_has_written_is_told_as_a_line_of_text() -> None:
    """It may be anybody's: nothing in it moves a terminal, and it is not told at length."""
    store = Keeper()
    store.others["train"] = [Holder("train", "\x1b[2Jsplit\n'train'\ud800" + "x" * 9999, "", None)]
    with pytest.raises(OutputConflict) as refused:
        begun(store)
    said = str(refused.value)
    assert r"\x1b[2Jsplit\x0a'train'" in said
    assert len(said) < 600
    said.encode()
