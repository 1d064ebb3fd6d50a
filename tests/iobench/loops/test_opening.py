"""Loaders for a loop."""

from __future__ import annotations

import pytest

from iobench.clock import VirtualClock
from iobench.errors import TrialFailed, Unavailable
from iobench.loaders import LoaderSettings
from iobench.loops.opening import batches_of, built, check_frameworks, loader_settings
from iobench.trial import Context, Place
from tests.iobench.loops.fakes import PARAMS, SAMPLES, looped


def test_settings_of_a_trial_are_its_loaders() -> None:
    """Params that are somebody else's are left out; nothing is lost."""
    found = loader_settings({**PARAMS, "augment": False, "item_s": 0.5})
    assert found == LoaderSettings(
        batch_size=SAMPLES, workers=1, prefetch=2, augment=False, item_s=0.5
    )


@pytest.mark.parametrize(
    ("loader", "consumer", "fits"),
    [
        ("torch", "torch", True),
        ("none", "torch", True),
        ("torch", "none", True),
        ("tensorflow", "torch", False),
    ],
)
def test_batches_must_be_what_the_loop_takes(loader: str, consumer: str, fits: bool) -> None:
    """Frameworks do not mix; what has none goes with all."""
    made, _ = looped(1)
    made.framework = loader  # type: ignore[assignment]
    if fits:
        check_frameworks(made, consumer)
        return
    with pytest.raises(Unavailable, match="a torch training loop does not take tensorflow batches"):
        check_frameworks(made, consumer)


@pytest.mark.parametrize("name", ["tf-data", "mxnet-record"])
def test_decoded_images_are_for_loaders_that_read_them(name: str) -> None:
    """Others would take pixels for an encoded image."""
    place = Place("/nowhere", "shards", decoded=True)
    context = Context({}, VirtualClock(), lambda done, unit: None)
    with pytest.raises(Unavailable, match="raw, torch-iterable, torch-map read them"):
        built(name, place, LoaderSettings(), context)


def test_other_things_than_batches_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another package's loader that yields what torch's gives: the message says what belongs."""
    loader, _ = looped(1)
    assert [batch.samples for batch in batches_of(loader, 0)] == [SAMPLES]
    monkeypatch.setattr(loader, "epoch", lambda number: iter([("images", "labels")]))
    with pytest.raises(TrialFailed, match=r"gives tuple where .* Batch\(images, labels, samples\)"):
        next(batches_of(loader, 0))
