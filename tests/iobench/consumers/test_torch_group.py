"""The group of processes that train one network; two of them train in ``test_several_devices``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from iobench.clock import SystemClock
from iobench.consumers.protocol import ConsumerSettings
from iobench.consumers.torch_group import TorchGroup
from iobench.consumers.torch_train import TorchConsumer

torch = pytest.importorskip("torch")

SETTINGS = ConsumerSettings(model="lenet", batch_size=4, device="cpu", image_size=32, classes=5)


@pytest.fixture
def group(monkeypatch: pytest.MonkeyPatch) -> Iterator[TorchGroup]:
    """Of this process alone, met in a file that has no name."""
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "lo")
    descriptor = os.memfd_create("meeting")
    try:
        found = TorchGroup(0, 1, f"/proc/self/fd/{descriptor}", on_gpu=False)
        try:
            yield found
        finally:
            found.leave()
    finally:
        os.close(descriptor)
    assert not torch.distributed.is_initialized()


def test_a_rank_trains_as_one_alone_does(group: TorchGroup) -> None:
    """The mean over one rank is its own gradient."""
    alone, rank = (
        TorchConsumer(SETTINGS, SystemClock()),
        TorchConsumer(SETTINGS, SystemClock(), group),
    )
    before = rank.fingerprint()
    assert alone.fingerprint() == before
    batch = alone.synthetic()
    for consumer in (alone, rank):
        consumer.step(batch)
        consumer.finish()
    assert rank.fingerprint() == alone.fingerprint() != before


def test_ranks_warm_up_by_the_same_number_of_steps(group: TorchGroup) -> None:
    """Whatever each of them takes: a step more on one would wait for ever."""
    rank = TorchConsumer(SETTINGS, SystemClock(), group)
    steps = []
    rank._net.register_forward_hook(lambda *_: steps.append(1))
    rank.warm_up()
    assert len(steps) == 3
    assert list(rank.compute_s()) == []


def test_its_notes_say_so(group: TorchGroup) -> None:
    """How many, and how they talk."""
    assert any(
        "1 ranks, a process each" in note and "gloo" in note
        for note in TorchConsumer(SETTINGS, SystemClock(), group).notes
    )
    assert not any("ranks" in note for note in TorchConsumer(SETTINGS, SystemClock()).notes)
