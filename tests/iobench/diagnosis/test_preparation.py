"""Loops that wait for their samples to be prepared."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.diagnosis import diagnose
from iobench.diagnosis.preparation import RULES
from iobench.trial import Trial
from tests.iobench.diagnosis.made_loops import GPU, by_code, primary, run, stalled, trials

CODES = {rule.code for rule in RULES}
PINNED: dict[str, Any] = {"params": {"pin_memory": True}}


def codes(*given: list[Trial], **how: Any) -> set[str]:
    """What is found about preparing."""
    return by_code(*given, **how).keys() & CODES


@pytest.mark.parametrize(
    ("rung", "code"),
    [
        ("decode", "slow-decode"),
        ("augment", "slow-augmentation"),
        ("collate", "slow-collate"),
        ("copy", "slow-copy"),
        ("warm", "slow-read-path"),
    ],
)
@pytest.mark.parametrize(("share", "fires"), [(0.05, True), (0.0499, False)])
def test_each_rung_has_its_rule(rung: str, code: str, share: float, fires: bool) -> None:
    """From 5 % of the time on, with the share and how sure it is."""
    found = by_code(stalled(preparation=0.3), ladder={rung: share})
    assert found.keys() & CODES == ({code} if fires else set())
    if fires:
        assert found[code].severity == "warning"
        assert "takes 5.0% (4.5% to 5.5%, 6 repeats) of its time" in found[code].evidence


def test_the_largest_rung_is_what_to_begin_with() -> None:
    """All that count are said."""
    rungs = {"copy": 0.06, "collate": 0.02, "augment": 0.12, "decode": 0.5, "cold": 0.1}
    busy = stalled(preparation=0.7, worker_cpu_s_per_1000_samples=1000.0)
    found = by_code(busy, ladder=rungs)
    assert found["slow-decode"].primary
    assert found["slow-decode"].severity == "problem"
    assert found.keys() >= {"slow-copy", "slow-augmentation", "slow-disk"}
    assert "slow-collate" not in found


def test_rungs_that_cannot_be_told_apart_are_not_spoken_of() -> None:
    """Their interval holds nothing."""
    assert codes(stalled(preparation=0.5), ladder={"decode": 0.4}, tells=False) == set()


@pytest.mark.parametrize(
    ("metrics", "params", "code"),
    [
        (GPU, {}, "unpinned-copy"),
        (GPU, {"device": "gpu"}, "unpinned-copy"),
        (GPU, {"pin_memory": True}, "slow-copy"),
        ({}, {}, "slow-copy"),
        (GPU, {"device": "cpu"}, "slow-copy"),
        ({**GPU, "emulated": True}, {}, "slow-copy"),
    ],
)
def test_pinned_memory_is_of_gpus_alone(
    metrics: dict[str, Any], params: dict[str, Any], code: str
) -> None:
    """On a processor nothing is copied to a device, and an emulated one has no memory."""
    found = by_code(stalled(preparation=0.3, params=params, **metrics), ladder={"copy": 0.25})
    assert found.keys() & CODES == {code}
    assert found[code].primary
    assert ("pin_memory: true" in found[code].advice) is (code == "unpinned-copy")


@pytest.mark.parametrize(("share", "fires"), [(0.05, True), (0.0499, False)])
def test_unpinned_memory_fires_from_its_threshold_on(share: float, fires: bool) -> None:
    """Copies that cost nothing need no pinning."""
    found = codes(stalled(preparation=0.3, **GPU), ladder={"copy": share})
    assert found == ({"unpinned-copy"} if fires else set())


@pytest.mark.parametrize(("cpu_s", "fires"), [(16.1, True), (15.9, False)])
def test_preparing_that_needs_more_processors_than_there_are(cpu_s: float, fires: bool) -> None:
    """The device takes 200 samples/s; four fifths of four processors are 3.2."""
    waiting = stalled(preparation=0.5, worker_cpu_s_per_1000_samples=cpu_s)
    found = by_code(waiting)
    assert found.keys() & CODES == ({"slow-preparation"} if fires else set())
    if fires:
        assert primary(waiting) == "slow-preparation"
        assert "it takes 3.2 processors, and there are 4" in found["slow-preparation"].evidence


@pytest.mark.parametrize(
    ("busy", "found"),
    [(0.80, {"slow-preparation"}), (0.79, {"preparing"}), (0.50, {"preparing"}), (0.49, set())],
)
def test_where_processor_time_was_not_seen_busy_processors_tell(
    busy: float, found: set[str]
) -> None:
    """As the cloud's guide has it: idle ones are too few workers; between, the cause is open."""
    assert codes(stalled(preparation=0.5, cpu_busy_share=busy)) == found


def test_preparing_of_which_nothing_else_is_known_is_a_cause() -> None:
    """As in runs of older versions: it is not left to a smaller one to be the first."""
    unseen = stalled(preparation=0.7, fetch=0.1)
    found = by_code(unseen)
    assert found.keys() >= {"preparing", "slow-disk", "input-high"}
    assert found["preparing"].primary
    assert "iobench ladder" in found["preparing"].advice


@pytest.mark.parametrize(("share", "fires"), [(0.0501, True), (0.0499, False)])
def test_preparing_counts_from_its_threshold_on(share: float, fires: bool) -> None:
    """And where a ladder was climbed, its rungs speak."""
    assert codes(stalled(preparation=share)) == ({"preparing"} if fires else set())
    assert codes(stalled(preparation=share), ladder={"decode": 0.01}) == set()


@pytest.mark.parametrize(("share", "fires"), [(0.0501, True), (0.0499, False)])
def test_preparing_that_takes_little_is_not_spoken_of(share: float, fires: bool) -> None:
    """Whatever the processors do."""
    found = codes(stalled(preparation=share, worker_cpu_s_per_1000_samples=1e4))
    assert found == ({"slow-preparation"} if fires else set())


def test_a_warm_loop_alone_waits_for_preparing() -> None:
    """Nothing was read from storage."""
    given = [*trials("synthetic", 0.5), *trials("warm", 1.0, cpu_busy_share=0.9)]
    assert codes(given) == {"slow-preparation"}


@pytest.mark.parametrize(
    ("data", "config", "already"),
    [
        ("shards@disk", {"size": 256, "shards": None}, True),
        ("files@disk", {"size": 256}, True),
        ("shards-16MB@s3", {"size": 224}, True),
        ("shards@disk", {"size": 257}, False),
        ("shards@disk", {"size": 256, "shards": "s3://bucket/of-somebody"}, False),
        ("originals@disk", {"size": 256}, False),
        ("shards@disk", "?", False),
    ],
)
def test_who_has_small_images_is_not_told_to_make_them(
    data: str, config: Any, already: bool
) -> None:
    """Shards that were given are of a size that is not known here."""
    made = run(stalled(preparation=0.5, params={"data": data}), ladder={"decode": 0.4})
    made = replace(made, config={**made.config, "data": config})
    (decode,) = [one for one in diagnose(made) if one.code == "slow-decode"]
    assert ("pixels already" in decode.advice) is already
    assert ("dataprep shard --size" in decode.advice) is not already
