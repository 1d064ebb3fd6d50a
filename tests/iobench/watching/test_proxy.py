"""A watched loader is, to its users, the loader."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from iobench.watching.proxy import proxied, unwatched


class Sampler:
    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch


class Loader:
    """Like torch's."""

    def __init__(self) -> None:
        self.sampler, self.batch_size = Sampler(), 4

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> int:
        return index * 2

    def __iter__(self) -> Iterator[int]:
        yield from range(3)


class Passes:
    """Counts passes, and goes through them as they are."""

    def __init__(self) -> None:
        self.begun = 0

    def __call__(self, make: Callable[[], Iterator[Any]]) -> Iterator[Any]:
        self.begun += 1
        return make()


def test_attributes_are_the_loaders() -> None:
    """Read, called, set, deleted and listed."""
    loader = Loader()
    watched = proxied(loader, Passes())
    watched.sampler.set_epoch(7)
    watched.batch_size = 8
    watched.note = "x"
    assert (loader.sampler.epoch, loader.batch_size, loader.note) == (7, 8, "x")  # type: ignore[attr-defined]
    del watched.note
    assert not hasattr(loader, "note")
    assert "sampler" in dir(watched)
    with pytest.raises(AttributeError, match="'Loader' object has no attribute 'absent'"):
        _ = watched.absent


def test_what_the_loaders_class_has_is_there_and_nothing_else() -> None:
    """Code asks ``hasattr(loader, '__len__')``."""
    watched = proxied(Loader(), Passes())
    assert (len(watched), watched[3], bool(watched)) == (3, 6, True)
    assert not hasattr(watched, "__next__")
    plain = proxied((n for n in range(2)), Passes())
    assert not hasattr(plain, "__len__")


def test_iterating_twice_is_two_passes() -> None:
    """Each of the loader's own making."""
    passes = Passes()
    watched = proxied(Loader(), passes)
    assert (list(watched), list(watched), passes.begun) == ([0, 1, 2], [0, 1, 2], 2)


def test_an_iterator_stays_one() -> None:
    """``next`` goes on with the pass that began, by itself or by ``iter``."""
    passes = Passes()
    watched = proxied(iter(range(4)), passes)
    assert [next(watched), next(watched)] == [0, 1]
    assert passes.begun == 1
    assert next(iter(watched)) == 2
    assert list(watched) == [3]
    with pytest.raises(StopIteration):
        next(watched)


def test_copies_are_of_the_loader_alone() -> None:
    """A worker process that is sent the loader watches nothing."""
    loader = Loader()
    watched = proxied(loader, Passes())
    assert type(pickle.loads(pickle.dumps(watched))) is Loader
    assert type(copy.deepcopy(watched)) is Loader


def test_it_shows_what_it_is() -> None:
    """To somebody who prints it."""
    assert repr(proxied([1, 2], Passes())) == "watched [1, 2]"


def test_a_loader_with_state_of_the_same_name_keeps_it() -> None:
    """Names of the proxy's own are not taken from the loader."""

    class Own(Loader):
        _pass = "own"
        _iobench = "own"

    assert proxied(Own(), Passes())._pass == "own"


def test_the_loader_of_one_that_is_watched() -> None:
    """Watching it again goes around it once, not twice."""
    loader = Loader()
    assert unwatched(proxied(loader, lambda make: make())) is loader
    assert unwatched(loader) is loader
