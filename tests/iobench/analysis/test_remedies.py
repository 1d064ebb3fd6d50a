"""Each cause has a remedy, and it is the first change."""

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

CAUSES: dict[str, tuple[Sequence[Trial], dict[str, Any], str]] = {
    "slow-decode": (ladder("decode"), {}, "measure_workers"),
    "slow-preparation": (
        together(loop("synthetic", 1000), loop("warm", 300)),
        {},
        "measure_workers",
    ),
    "slow-augmentation": (ladder("augment", colour_jitter=True, workers=2), {}, "colour_jitter"),
    "slow-collate": (ladder("collate"), {}, "normalise"),
    "unpinned-copy": (ladder("copy", metrics=GPU), {}, "pin_memory"),
    "slow-copy": (ladder("copy"), {}, "normalise"),
    "slow-read-path": (ladder("warm", loader="torch-map"), {}, "loader"),
    "slow-disk": (ladder("cold"), {}, "faster_disk"),
    "tiny-files": (
        together(
            *(
                loop(source, rate, form="files")
                for source, rate in (("synthetic", 1000), ("warm", 990))
            ),
            loop("cold", 300, form="files", metrics=FILES),
        ),
        {},
        "sharding",
    ),
    "store-throttles": ([*STORE, *loop("store", 300, metrics=REFUSING)], {}, "stage"),
    "slow-store-latency": ([*STORE, *loop("store", 200), *probe(GROWS)], PROBED, "stage"),
    "slow-store-bandwidth": ([*STORE, *loop("store", 200), *probe(FLAT)], PROBED, "stage"),
    "slow-store": ([*STORE, *loop("store", 200)], {}, "stage"),
    "other-programs": (
        together(loop("synthetic", 1000), loop("warm", 300, metrics=CROWDED)),
        {},
        "other_programs",
    ),
    "uneven-ranks": (
        together(loop("synthetic", 1000), loop("warm", 550, metrics=UNEVEN)),
        {},
        "even_ranks",
    ),
    "input-bound": (together(loop("synthetic", 1000), loop("cold", 300)), {}, "measure_parts"),
    "epoch-starts": (
        together(loop("synthetic", 1000), loop("warm", 300, metrics=STARTS)),
        {},
        "longer_epochs",
    ),
}


@pytest.mark.parametrize("code", CAUSES)
def test_the_first_change_is_a_remedy_of_the_cause(code: str) -> None:
    """This holds even if its gain is not predicted."""
    trials, config, setting = CAUSES[code]
    result = analyse(run(trials, **config))
    (primary,) = [finding for finding in result.findings if finding.primary]
    assert primary.code == code
    assert result.advice.changes[0].setting == setting
    assert setting in REMEDIES[code]


def test_every_cause_of_a_loop_has_a_remedy() -> None:
    """Causes of watched loops have their advice in the finding itself."""
    watched = "waiting"
    causes = {rule.code for rule in RULES.values() if rule.kind == "cause"}
    assert {code for code in causes if not code.startswith(watched)} == set(CAUSES)


def test_a_first_start_that_is_long_by_itself_asks_for_a_longer_measurement() -> None:
    """A job has it only once, and its workers are kept for the later epochs already."""
    once = {**STARTS, "epoch_start_s": 0.1}
    result = analyse(run(loop("synthetic", 1000), loop("warm", 300, metrics=once)))
    assert [change.setting for change in result.advice.changes][:2] == [
        "more_images",
        "longer_epochs",
    ]


def test_large_images_behind_a_slow_disk_are_resized_before_it_is_replaced() -> None:
    """Hardware and other places come last."""
    changes = analyse(run(ladder("cold"), **LARGE)).advice.changes
    assert [change.setting for change in changes][:2] == ["resize", "faster_disk"]


def test_leaving_out_an_augmentation_is_predicted_where_loaders_have_shown_it() -> None:
    """It changes the training, so that it is only proposed where augmenting is the cause."""
    jitter: dict[str, Any] = {"colour_jitter": True}
    trials = together(
        *(loader(rate, n, **jitter) for rate, n in ((300, 1), (590, 2), (592, 4))),
        loader(1150, 2),
        *(loop("synthetic", 2000, workers=2, **jitter), loop("warm", 585, workers=2, **jitter)),
    )
    first = analyse(run(trials)).advice.changes[0]
    assert (first.setting, first.basis) == ("colour_jitter", "predicted")
    assert first.gain is not None
    assert first.gain.median == pytest.approx(1150 / 590, rel=0.02)
    far = together(trials, loop("store", 100, workers=2, **jitter))
    settings = {change.setting for change in analyse(run(far)).advice.changes}
    assert "colour_jitter" not in settings
