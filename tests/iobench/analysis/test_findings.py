"""What takes a loop's time, named with its evidence; and what qualifies the figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.analysis.analyse import analyse
from iobench.analysis.rules import RULES
from iobench.trial import Trial
from tests.iobench.analysis.made import (
    GPU,
    UNPROVED,
    WARM,
    analysed,
    by_code,
    done,
    loader,
    loop,
    primary,
    run,
    together,
)

RUNGS = ("synthetic", "copy", "collate", "augment", "decode", "warm", "cold")
CODES = {
    "copy": "slow-copy",
    "collate": "slow-collate",
    "augment": "slow-augmentation",
    "decode": "slow-decode",
    "warm": "slow-read-path",
    "cold": "slow-disk",
}


def ladder(slow: str, **params: Any) -> list[Trial]:
    """A whole ladder on which one rung takes half of the time."""
    seconds, trials = 1.0, []
    for rung in RUNGS:
        seconds += 1.2 if rung == slow else 0.04 if rung != "synthetic" else 0.0
        trials += loop(rung, 1000 / seconds, **params)
    return trials


def watched(**metrics: Any) -> list[Trial]:
    """A loop of somebody's own."""
    usual = {"wait_share": 0.5, "seconds": 100.0, "steps": 1000}
    return done("watch", {"loader": "DataLoader"}, None, 1, **{**usual, **metrics})


@pytest.mark.parametrize(("rung", "code"), CODES.items())
def test_the_rung_that_costs_most_is_the_primary_finding(rung: str, code: str) -> None:
    """With its share of the step, and in the verdict."""
    found = analysed(ladder(rung))
    (first,) = [finding for finding in found.findings if finding.primary]
    assert (first.code, first.severity) == (code, "problem")
    assert first.share is not None
    assert 0.4 < first.share < 0.6
    assert "bottleneck" in found.verdict


def test_copies_from_unpinned_memory_are_named_on_a_gpu_alone() -> None:
    """A CPU copies nothing over a link."""
    assert primary(ladder("copy", metrics=GPU)) == "unpinned-copy"
    assert primary(ladder("copy", metrics=GPU, pin_memory=True)) == "slow-copy"


@pytest.mark.parametrize(
    ("first_s", "whole_s", "code"),
    [
        (0.4, 0.5, "slow-store-latency"),
        (0.1, 0.5, "slow-store-bandwidth"),
        (None, None, "slow-store"),
    ],
)
def test_a_store_is_slow_by_latency_or_by_bandwidth(
    first_s: float | None, whole_s: float | None, code: str
) -> None:
    """By how much of a GET passes before its first byte."""
    seen = {"store_first_byte_s": first_s, "store_get_s": whole_s}
    trials = [*loop("synthetic", 1000), *loop("warm", 990), *loop("store", 300, metrics=seen)]
    assert primary(trials) == code


def test_a_store_that_refuses_comes_before_its_latency() -> None:
    """Requests are what it has too many of."""
    seen = {"store_refused": 5, "store_requests": 95, "store_first_byte_s": 0.4, "store_get_s": 0.5}
    trials = [*loop("synthetic", 1000), *loop("warm", 990), *loop("store", 300, metrics=seen)]
    assert primary(trials) == "store-throttles"


@pytest.mark.parametrize(("form", "code"), [("files", "tiny-files"), ("shards", "slow-disk")])
def test_small_files_are_named_only_where_files_were_opened(form: str, code: str) -> None:
    """Shards hold hundreds of samples."""
    trials = together(
        *(loop("synthetic", 1000, form=form), loop("warm", 990, form=form)),
        loop("cold", 300, form=form, metrics={"mean_object_bytes": 40_000}),
    )
    assert primary(trials) == code


@pytest.mark.parametrize(
    ("alone", "busy", "code"),
    [
        (320.0, None, "slow-preparation"),
        (900.0, None, "slow-disk"),
        (None, 0.9, "slow-preparation"),
        (None, 0.2, "slow-disk"),
        (None, 0.7, "input-bound"),
    ],
)
def test_without_a_warm_loop_the_loader_or_the_processors_tell(
    alone: float | None, busy: float | None, code: str
) -> None:
    """What the loader gives from memory decides, else how busy the CPUs were."""
    told = [] if alone is None else loader(alone, 1)
    metrics = {} if busy is None else {"cpu_busy_share": busy}
    trials = [*told, *loop("synthetic", 1000), *loop("cold", 300, metrics=metrics)]
    assert primary(trials) == code


def test_other_programs_that_take_the_processors() -> None:
    """They leave less than the loop would use."""
    seen = {"cpu_busy_share": 0.98, "cores_busy": 0.5, "cpu_s_per_1000_samples": 2.0}
    found = analysed(loop("synthetic", 1000), loop("warm", 300, metrics=seen))
    (first,) = [finding for finding in found.findings if finding.primary]
    assert first.code == "other-programs"
    assert "Other programs" in found.verdict
    assert "other_programs" in {change.setting for change in found.advice.changes}


@pytest.mark.parametrize(
    ("metrics", "code"),
    [
        ({"cpu_busy_share": 0.9}, "waiting-preparation"),
        ({"cpu_busy_share": 0.9, "loop_cpu_share": 0.2}, "waiting-others"),
        ({"cpu_busy_share": 0.2}, "waiting-workers"),
        ({"cpu_busy_share": 0.6}, "waiting"),
        ({}, "waiting"),
        ({"wait_share": 0.01, "epoch_start_share": 0.2, "epoch_start_s": 3.0}, "epoch-starts"),
        ({"wait_share": 0.01, "time_to_first_batch_s": 60.0}, "late-first-batch"),
    ],
)
def test_a_watched_loop_that_waits(metrics: dict[str, float], code: str) -> None:
    """For what, as far as the machine's use tells."""
    found = by_code(watched(**metrics))
    assert code in found
    assert found[code].advice


def test_a_watched_loop_whose_device_computes_meanwhile_loses_nothing() -> None:
    """A host may wait while its GPU still works."""
    assert not {"waiting", "waiting-workers"} & by_code(watched(device_wait_share=0.01)).keys()


def test_uneven_ranks_and_ranks_that_trained_apart() -> None:
    """One waits; another has other parameters in the end."""
    seen = {
        "devices": 2,
        "rank_uneven_share": 0.2,
        "rank_wait_s": [0.01, 0.05],
        "ranks_agree": False,
    }
    found = by_code(loop("synthetic", 1000), loop("warm", 700, metrics=seen))
    assert "rank 1 waits 50 ms" in found["uneven-ranks"].evidence
    assert found["ranks-differ"].severity == "problem"


def test_steps_that_stand_out_and_a_late_first_batch() -> None:
    """By the highest quantile that there is; of all points the latest."""
    seen = {"step_s_p50": 0.1, "step_s_p90": 0.5, "time_to_first_batch_s": 30.0}
    more = {"first_batch_listing_s": 25.0}
    found = by_code(loop("synthetic", 1000), loop("warm", 900, metrics={**seen, **more}))
    assert "5.0 times the median" in found["step-outliers"].evidence
    assert "25 s of it listing" in found["late-first-batch"].evidence


def test_probes_find_small_files_and_refusals() -> None:
    """Without a loop they are what to begin with."""
    layouts = [
        done(
            "layout",
            {"data": f"{form}@disk", "access": form, "parallelism": 4},
            WARM,
            samples_per_s=r,
        )
        for form, r in (("files", 100.0), ("shards", 900.0))
    ]
    params: dict[str, Any] = {"store": "s", "client": "boto3", "operation": "get"}
    params |= {"object_bytes": 10**6, "connections": 4}
    refusing = done("object", params, None, mb_per_s=10.0, refused=5, requests=95)
    found = by_code(*layouts, refusing)
    assert {"tiny-files", "store-throttles"} <= found.keys()
    assert "tiny-files" in by_code(*layouts, loader(900, 1, data="files@disk"))
    assert "tiny-files" not in by_code(*layouts, loader(900, 1))


def test_what_qualifies_a_run_is_said_of_the_loop_that_it_is_about() -> None:
    """Repeats, cold that was not proved, data in memory, an emulated device, a suspended trial."""
    resident = replace(WARM, cache_resident=True)
    trials = together(
        *(loop("synthetic", 1000), loop("cold", 500, cold=UNPROVED)),
        loop("warm", 600, cold=resident, metrics={"stood_still_s": 9.0}),
    )
    found = by_code(trials, repeats=3)
    for code in ("not-shown-cold", "cache-resident", "emulated"):
        assert found[code].of == "g", code
    assert "half was resident" in found["not-shown-cold"].evidence
    assert found["few-repeats"].of == found["stood-still"].of == ""


def test_repeats_that_scatter_are_flagged() -> None:
    """With their range; the confidence is low."""
    trials = [*loop("synthetic", 1000), *loop("warm", 500)]
    wild = [
        replace(t, metrics={**t.metrics, "samples_per_s": rate})
        for t, rate in zip(trials[6:], (226, 1900, 6449, 1936, 300, 2000), strict=True)
    ]
    found = analyse(run([*trials[:6], *wild]))
    (scattered,) = [finding for finding in found.findings if finding.code == "scattered"]
    assert "226 to 6,449" in scattered.evidence
    assert found.confidence is not None
    assert found.confidence.level == "low"


@pytest.mark.parametrize(("repeats", "level"), [(2, "low"), (5, "medium"), (6, "high")])
def test_confidence_grows_with_the_repeats(repeats: int, level: str) -> None:
    """Two are a smoke run."""
    found = analysed(loop("synthetic", 1000, repeats=repeats), loop("warm", 500, repeats=repeats))
    assert found.confidence is not None
    assert found.confidence.level == level


def test_a_rate_above_its_link_is_a_cache() -> None:
    """By what the config says of the disk."""
    params: dict[str, Any] = {"target": "nvme", "operation": "read", "cache": "direct"}
    params |= {"pattern": "sequential"}
    params |= {"block_bytes": 2**20, "parallelism": 4}
    trials = done("disk", params, replace(WARM, asked="direct", label="direct"), mb_per_s=5000.0)
    limits = {"targets": {"nvme": {"mb_per_s": 3500}}}
    assert "nvme gave 5,000" in by_code(trials, limits=limits)["beyond-limit"].evidence
    above = {"targets": {"nvme": {"mb_per_s": 7000}}}
    assert "beyond-limit" not in by_code(trials, limits=above)


def test_storage_behind_a_target_qualifies_its_figures() -> None:
    """Memory is no disk; NFS reads little ahead."""
    params: dict[str, Any] = {"operation": "read", "pattern": "sequential", "cache": "warm"}
    params |= {"block_bytes": 2**20, "parallelism": 4}
    trials = [done("disk", {"target": name, **params}, WARM, mb_per_s=9.0) for name in ("a", "b")]
    targets = {"a": {"kind": "tmpfs"}, "b": {"kind": "nfs", "read_ahead_kb": 128}}
    found = by_code(*trials, environment={"targets": targets})
    assert {"target-in-memory", "target-over-network", "nfs-reads-little-ahead"} <= found.keys()


def test_every_rule_has_its_own_words() -> None:
    """One rule a code, with a source."""
    titles = [rule.title for rule in RULES.values()]
    assert all(rule.when and rule.source for rule in RULES.values())
    assert len(titles) > 35
