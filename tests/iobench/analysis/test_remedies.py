"""Each cause of a loss has a remedy, which is the first recommended change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from iobench.analysis.analyse import analyse
from iobench.analysis.finding_rules import RULES
from iobench.analysis.remedies import REMEDIES
from iobench.results.trial import Trial
from tests.iobench.analysis.made import GPU, PROBED, loader, loop, probe, run, together
from tests.iobench.analysis.test_findings import FLAT, GROWS, ladder

CROWDED = {"cpu_busy_share": 0.98, "cores_busy": 0.5, "cpu_s_per_1000_samples": 2.0}
UNEVEN = {"devices": 2, "rank_uneven_share": 0.4, "rank_wait_s": [0.01, 0.05]}
REFUSING = {"store_refused": 5, "store_requests": 95}
STARTS = {"epoch_start_share": 0.5, "epoch_start_s": 1.8, "time_to_first_batch_s": 2.0}
FILES = {"mean_object_bytes": 40_000}
STORE = together(loop("synthetic", 1000), loop("warm", 990))
LARGE: dict[str, Any] = {"data": {"size": 512}}

DEVICE = loop("synthetic", 1000)
SLOW_STORE = [*STORE, *loop("store", 200)]
SMALL_FILES = together(
    loop("synthetic", 1000, form="files"),
    loop("warm", 990, form="files"),
    loop("cold", 300, form="files", metrics=FILES),
)

TRIALS: dict[str, Sequence[Trial]] = {
    "slow-decode": ladder("decode"),
    "slow-preparation": [*DEVICE, *loop("warm", 300)],
    "slow-augmentation": ladder("augment", colour_jitter=True, workers=2),
    "slow-collate": ladder("collate"),
    "unpinned-copy": ladder("copy", metrics=GPU),
    "slow-copy": ladder("copy"),
    "slow-read-path": ladder("warm", loader="torch-map"),
    "slow-disk": ladder("cold"),
    "tiny-files": SMALL_FILES,
    "store-throttles": [*STORE, *loop("store", 300, metrics=REFUSING)],
    "slow-store-latency": [*SLOW_STORE, *probe(GROWS)],
    "slow-store-bandwidth": [*SLOW_STORE, *probe(FLAT)],
    "slow-store": SLOW_STORE,
    "other-programs": [*DEVICE, *loop("warm", 300, metrics=CROWDED)],
    "uneven-ranks": [*DEVICE, *loop("warm", 550, metrics=UNEVEN)],
    "input-bound": [*DEVICE, *loop("cold", 300)],
    "epoch-starts": [*DEVICE, *loop("warm", 300, metrics=STARTS)],
}
"""Trials of a run by the code of its primary finding."""

FIRST_CHANGES = {
    "slow-decode": "measure_workers",
    "slow-preparation": "measure_workers",
    "slow-augmentation": "colour_jitter",
    "slow-collate": "normalise",
    "unpinned-copy": "pin_memory",
    "slow-copy": "normalise",
    "slow-read-path": "loader",
    "slow-disk": "faster_disk",
    "tiny-files": "sharding",
    "store-throttles": "stage",
    "slow-store-latency": "stage",
    "slow-store-bandwidth": "stage",
    "slow-store": "stage",
    "other-programs": "other_programs",
    "uneven-ranks": "even_ranks",
    "input-bound": "measure_parts",
    "epoch-starts": "longer_epochs",
}
"""The setting that the first recommended change names, by the code of the cause."""


@pytest.mark.parametrize("code", TRIALS)
def test_the_first_change_is_a_remedy_of_the_cause(code: str) -> None:
    """The remedy comes first even if its gain is not predicted."""
    config = PROBED if code in ("slow-store-latency", "slow-store-bandwidth") else {}
    result = analyse(run(TRIALS[code], **config))
    (primary,) = [finding for finding in result.findings if finding.primary]
    assert primary.code == code
    assert result.advice.changes[0].setting == FIRST_CHANGES[code]
    assert FIRST_CHANGES[code] in REMEDIES[code]


def test_every_cause_of_a_loop_has_a_remedy() -> None:
    """All causes are in this table, except those of watched loops, whose finding has the advice."""
    causes = {rule.code for rule in RULES.values() if rule.kind == "cause"}
    measured_causes = {code for code in causes if not code.startswith("waiting")}
    assert measured_causes == TRIALS.keys() == FIRST_CHANGES.keys()


def test_a_first_start_that_is_long_by_itself_asks_for_a_longer_measurement() -> None:
    """The first advice is more images, since a job starts its workers once."""
    once = {**STARTS, "epoch_start_s": 0.1}
    changes = analyse(run(DEVICE, loop("warm", 300, metrics=once))).advice.changes
    assert [change.setting for change in changes][:2] == ["more_images", "longer_epochs"]


def test_large_images_behind_a_slow_disk_are_resized_before_it_is_replaced() -> None:
    """Changes of hardware and of the place of the data come last."""
    changes = analyse(run(ladder("cold"), **LARGE)).advice.changes
    assert [change.setting for change in changes][:2] == ["resize", "faster_disk"]


@pytest.mark.parametrize(
    ("form", "size", "is_resized"),
    [("shards", 512, True), ("shards-224px", 512, False), ("shards-512px", 224, True)],
)
def test_images_that_are_small_already_are_not_resized(
    form: str, size: int, is_resized: bool
) -> None:
    """The size that counts is that of the images that the loop reads."""
    result = analyse(run(ladder("cold", form=form), data={"size": size}))
    assert ("resize" in {change.setting for change in result.advice.changes}) is is_resized


def test_leaving_out_an_augmentation_is_predicted_where_loaders_have_shown_it() -> None:
    """The change is proposed only if augmenting is the cause, because it changes the training."""
    jitter: dict[str, Any] = {"colour_jitter": True}
    with_jitter = [loader(rate, n, **jitter) for rate, n in ((300, 1), (590, 2), (592, 4))]
    trials = together(
        *with_jitter,
        loader(1150, 2),
        loop("synthetic", 2000, workers=2, **jitter),
        loop("warm", 585, workers=2, **jitter),
    )
    first = analyse(run(trials)).advice.changes[0]
    assert (first.setting, first.basis) == ("colour_jitter", "predicted")
    assert first.gain is not None
    assert first.gain.median == pytest.approx(1150 / 590, rel=0.02)
    far = together(trials, loop("store", 100, workers=2, **jitter))
    settings = {change.setting for change in analyse(run(far)).advice.changes}
    assert "colour_jitter" not in settings
