"""Findings: what takes the time of a loop, with the evidence, and what qualifies the figures."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from iobench.analysis.analyse import analyse
from iobench.analysis.finding_rules import RULES
from iobench.report.front_page import front
from iobench.results.trial import Trial
from tests.iobench.analysis.made import (
    GPU,
    PROBED,
    UNPROVED,
    WARM,
    analysed,
    by_code,
    done,
    loader,
    loop,
    primary,
    probe,
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
    """Return a whole ladder on which one rung takes half of the time."""
    seconds = 1.0
    trials = []
    for rung in RUNGS:
        if rung == slow:
            seconds += 1.2
        elif rung != "synthetic":
            seconds += 0.04
        trials += loop(rung, 1000 / seconds, **params)
    return trials


def watched(**metrics: Any) -> list[Trial]:
    """Return one watched loop that waits for half of its time unless ``metrics`` say otherwise."""
    usual = {"wait_share": 0.5, "seconds": 100.0, "steps": 1000}
    return done("watch", {"loader": "DataLoader"}, None, 1, **{**usual, **metrics})


@pytest.mark.parametrize(("rung", "code"), CODES.items())
def test_the_rung_that_costs_most_is_the_primary_finding(rung: str, code: str) -> None:
    """The finding has the rung's share of the step, and the verdict names it."""
    result = analysed(ladder(rung))
    (first,) = [finding for finding in result.findings if finding.primary]
    assert (first.code, first.severity) == (code, "problem")
    assert first.share is not None
    assert 0.4 < first.share < 0.6
    assert "bottleneck" in result.verdict


STARTS = {"epoch_start_share": 0.4, "epoch_start_s": 0.1, "time_to_first_batch_s": 2.0}


def test_the_starts_of_epochs_are_a_cause_of_their_own() -> None:
    """Preparing and reading are counted without the starts, so that the causes add up."""
    trials = together(
        loop("synthetic", 1000),
        loop("warm", 250, metrics=STARTS),
        loop("cold", 200, metrics={**STARTS, "epoch_start_share": 0.5}),
    )
    result = analysed(trials)
    by_name = {finding.code: finding for finding in result.findings}
    starts = by_name["epoch-starts"]
    # A sample takes 1 ms on the device, 4 ms with input warm (1.6 ms of them are starts), and
    # 5 ms with input cold.
    assert starts.share == pytest.approx(0.32, rel=0.05)
    assert starts.evidence.endswith(
        "of the time with input warm: 2 s for the first batch, 0.1 s for each later start"
    )
    assert by_name["slow-preparation"].share == pytest.approx(0.28, rel=0.05)
    assert by_name["slow-disk"].share == pytest.approx(0.2, rel=0.05)
    assert result.loop is not None
    assert result.loop.loss is not None
    causes = [finding for finding in result.findings if RULES[finding.code].kind == "cause"]
    lost_share = sum(finding.share or 0.0 for finding in causes)
    assert lost_share == pytest.approx(result.loop.loss.median, rel=0.02)


def test_starts_of_epochs_that_take_little_are_no_cause() -> None:
    """Starts below 5 % are no cause, and a steady state has none."""
    for share in (0.04, 0.0):
        metrics = {**STARTS, "epoch_start_share": share}
        trials = together(loop("synthetic", 1000), loop("warm", 250, metrics=metrics))
        assert "epoch-starts" not in by_code(trials)


def test_a_device_is_the_limit_where_starts_and_the_rest_are_each_little() -> None:
    """A loss of 7 %, of which starts of epochs are 4 %, has no cause to remove."""
    metrics = {**STARTS, "epoch_start_share": 0.04}
    result = analysed(loop("synthetic", 1000), loop("warm", 930, metrics=metrics))
    (first,) = [finding for finding in result.findings if finding.primary]
    assert first.code == "slow-device"
    assert "The device is the limit" in result.verdict
    assert result.advice.changes == ()


def test_the_start_of_an_epoch_behind_a_store_is_part_of_the_store() -> None:
    """Samples are fetched in that time, so only a loop that reads from memory shows the starts."""
    trials = together(loop("synthetic", 1000), loop("store", 250, metrics=STARTS))
    codes = by_code(trials)
    assert "epoch-starts" not in codes
    assert "input-bound" in codes


def test_copies_from_unpinned_memory_are_named_on_a_gpu_alone() -> None:
    """The finding is for GPUs, since a CPU copies nothing over a link."""
    assert primary(ladder("copy", metrics=GPU)) == "unpinned-copy"
    assert primary(ladder("copy", metrics=GPU, pin_memory=True)) == "slow-copy"


STORE_LOOP = together(loop("synthetic", 1000), loop("warm", 990), loop("store", 200))
GROWS = {(8_000_000, 1): 3.0, (8_000_000, 4): 11.6, (8_000_000, 16): 44.0, (1_000_000, 4): 11.0}
LARGER = {(1_000_000, 2): 2.0, (4_000_000, 2): 7.5, (16_000_000, 2): 28.0}
FLAT = {(8_000_000, 1): 11.8, (8_000_000, 4): 12.0, (8_000_000, 16): 12.0, (1_000_000, 4): 11.7}
BY_SIZE = {(1_000_000, 4): 11.9, (8_000_000, 4): 12.0}


@pytest.mark.parametrize(
    ("rates", "code"),
    [
        (GROWS, "slow-store-latency"),
        (LARGER, "slow-store-latency"),
        (FLAT, "slow-store-bandwidth"),
        (BY_SIZE, "slow-store"),
    ],
)
def test_a_store_is_slow_by_latency_or_by_bandwidth(
    rates: dict[tuple[int, int], float], code: str
) -> None:
    """The growth with connections or object size decides, whatever the share of the first byte."""
    result = analysed(STORE_LOOP, probe(rates), **PROBED)
    (first,) = [finding for finding in result.findings if finding.primary]
    assert first.code == code
    assert "the probe gives" in first.evidence


def test_the_first_byte_decides_nothing() -> None:
    """A run without points of the probe says so, and names the keys that measure them."""
    seen = {"store_first_byte_s": 0.4, "store_get_s": 0.5}
    result = analysed(loop("synthetic", 1000), loop("warm", 990), loop("store", 300, metrics=seen))
    (first,) = [finding for finding in result.findings if finding.primary]
    assert first.code == "slow-store"
    assert "whether latency or bandwidth limits was not measured" in first.evidence
    assert "object_store.targets, .connections and .object_bytes" in first.evidence
    commands = [change.command for change in result.advice.changes]
    assert any("connections: [1, 4, 16, 64]" in command for command in commands)


def test_a_probe_of_another_store_says_nothing_of_this_one() -> None:
    """The probe is not used as evidence if the data are in another bucket."""
    elsewhere = {"object_store": {"targets": [{"label": "s3", "uri": "s3://elsewhere/x"}]}}
    assert "slow-store" in by_code(STORE_LOOP, probe(FLAT), **elsewhere)
    settings = {"data": {"shards": "s3://elsewhere/imagenet"}, **elsewhere}
    assert "slow-store-bandwidth" in by_code(STORE_LOOP, probe(FLAT), **settings)


def test_a_store_that_refuses_comes_before_its_latency() -> None:
    """A store that refuses requests is named as throttling, however long they take."""
    seen = {"store_refused": 5, "store_requests": 95, "store_first_byte_s": 0.4, "store_get_s": 0.5}
    trials = [*loop("synthetic", 1000), *loop("warm", 990), *loop("store", 300, metrics=seen)]
    assert primary(trials) == "store-throttles"


@pytest.mark.parametrize(("form", "code"), [("files", "tiny-files"), ("shards", "slow-disk")])
def test_small_files_are_named_only_where_files_were_opened(form: str, code: str) -> None:
    """A loop over shards is not told about small files, since a shard holds hundreds of samples."""
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
    """The rate of the loader from memory decides; without it, how busy the CPUs were."""
    loaders = [] if alone is None else loader(alone, 1)
    metrics = {} if busy is None else {"cpu_busy_share": busy}
    trials = [*loaders, *loop("synthetic", 1000), *loop("cold", 300, metrics=metrics)]
    assert primary(trials) == code


def test_other_programs_that_take_the_processors() -> None:
    """Other programs are the finding if they leave the loop less than it would use."""
    seen = {"cpu_busy_share": 0.98, "cores_busy": 0.5, "cpu_s_per_1000_samples": 2.0}
    result = analysed(loop("synthetic", 1000), loop("warm", 300, metrics=seen))
    (first,) = [finding for finding in result.findings if finding.primary]
    assert first.code == "other-programs"
    assert "Other programs" in result.verdict
    assert "other_programs" in {change.setting for change in result.advice.changes}


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
    """The finding names the reason for the waiting as far as the machine's use shows it."""
    findings = by_code(watched(**metrics))
    assert code in findings
    assert findings[code].advice


def test_a_watched_loop_whose_device_computes_meanwhile_loses_nothing() -> None:
    """No waiting is reported if the GPU still computes while the host waits."""
    assert not {"waiting", "waiting-workers"} & by_code(watched(device_wait_share=0.01)).keys()


def test_loss_and_waiting_are_two_figures() -> None:
    """The loss compares with data in device memory; the device waits for less than that."""
    result = analysed(loop("synthetic", 1000), loop("warm", 500, metrics={"wait_share": 0.3}))
    assert result.summary["stall_fraction"] == pytest.approx(0.5, abs=0.01)
    assert result.summary["waiting_fraction"] == pytest.approx(0.3)
    (summary,) = result.summary["training"]
    assert summary["waiting_fraction"]["median"] == pytest.approx(0.3)
    lead = front(result).lead
    assert "Loss 50" in lead
    assert "Waiting 30" in lead
    assert "device waits" not in lead


def test_ranks_that_wait_for_a_slower_one_are_the_cause() -> None:
    """Waiting for a slower rank is the primary finding if it is half of the loss or more."""
    seen = {"devices": 2, "rank_uneven_share": 0.3, "rank_wait_s": [0.01, 0.05]}
    result = analysed(loop("synthetic", 1000), loop("warm", 550, metrics=seen))
    (first,) = [finding for finding in result.findings if finding.primary]
    assert first.code == "uneven-ranks"
    assert result.advice.changes[0].setting == "even_ranks"


@pytest.mark.parametrize(
    ("processors", "text"),
    [(4, "; 2 workers on 4 CPUs, which were"), (None, "; 2 workers; CPUs were")],
)
def test_the_cpus_are_busy_not_the_workers(processors: int | None, text: str) -> None:
    """The evidence says of the CPUs how busy they were, also if their number is unknown."""
    warm = loop("warm", 300, workers=2, metrics={"cpu_busy_share": 0.6})
    findings = by_code(loop("synthetic", 1000, workers=2), warm, processors=processors)
    assert f"{text} 60 % busy" in findings["slow-preparation"].evidence


def test_long_waits_have_no_exponent() -> None:
    """Waits of a second or more, and starts of 100 s or more, are written with all digits."""
    seen = {"devices": 2, "rank_uneven_share": 0.3, "rank_wait_s": [0.01, 1.25]}
    findings = by_code(loop("synthetic", 1000), loop("warm", 550, metrics=seen))
    assert "rank 1 waits 1,250 ms" in findings["uneven-ranks"].evidence
    starts = {"epoch_start_share": 0.5, "epoch_start_s": 1.8, "time_to_first_batch_s": 123.4}
    findings = by_code(loop("synthetic", 1000), loop("warm", 300, metrics=starts))
    evidence = findings["epoch-starts"].evidence
    assert evidence.endswith(": 123 s for the first batch, 1.8 s for each later start")


def test_uneven_ranks_and_ranks_that_trained_apart() -> None:
    """Uneven ranks and ranks whose parameters differ in the end are two findings."""
    seen = {
        "devices": 2,
        "rank_uneven_share": 0.2,
        "rank_wait_s": [0.01, 0.05],
        "ranks_agree": False,
    }
    findings = by_code(loop("synthetic", 1000), loop("warm", 700, metrics=seen))
    assert "rank 1 waits 50 ms" in findings["uneven-ranks"].evidence
    assert findings["ranks-differ"].severity == "problem"


def test_steps_that_stand_out_and_a_late_first_batch() -> None:
    """The highest available quantile and the latest first batch of all points are the evidence."""
    seen = {"step_s_p50": 0.1, "step_s_p90": 0.5, "time_to_first_batch_s": 30.0}
    more = {"first_batch_listing_s": 25.0}
    findings = by_code(loop("synthetic", 1000), loop("warm", 900, metrics={**seen, **more}))
    assert "5.0 times the median" in findings["step-outliers"].evidence
    assert "25 s of it listing" in findings["late-first-batch"].evidence


def test_probes_find_small_files_and_refusals() -> None:
    """Probes give the first finding if no loop was measured."""
    layouts = []
    for form, rate in (("files", 100.0), ("shards", 900.0)):
        layout = {"data": f"{form}@disk", "access": form, "parallelism": 4}
        layouts.append(done("layout", layout, WARM, samples_per_s=rate))
    params: dict[str, Any] = {"store": "s", "client": "boto3", "operation": "get"}
    params |= {"object_bytes": 10**6, "connections": 4}
    refusing = done("object", params, None, mb_per_s=10.0, refused=5, requests=95)
    findings = by_code(*layouts, refusing)
    assert {"tiny-files", "store-throttles"} <= findings.keys()
    assert "tiny-files" in by_code(*layouts, loader(900, 1, data="files@disk"))
    assert "tiny-files" not in by_code(*layouts, loader(900, 1))


def test_a_qualifying_finding_names_its_loop() -> None:
    """A finding that qualifies one loop names it; one that concerns the run names none."""
    resident = replace(WARM, cache_resident=True)
    trials = together(
        *(loop("synthetic", 1000), loop("cold", 500, cold=UNPROVED)),
        loop("warm", 600, cold=resident, metrics={"stood_still_s": 9.0}),
    )
    findings = by_code(trials, repeats=3)
    for code in ("not-shown-cold", "cache-resident", "emulated"):
        assert findings[code].of == "g", code
    assert "half was resident" in findings["not-shown-cold"].evidence
    assert findings["few-repeats"].of == findings["stood-still"].of == ""


def test_repeats_that_scatter_are_flagged() -> None:
    """The finding has the range of the repeats, and the confidence of the run is low."""
    rates = (226, 1900, 6449, 1936, 300, 2000)
    wild = []
    for trial, rate in zip(loop("warm", 500), rates, strict=True):
        wild.append(replace(trial, metrics={**trial.metrics, "samples_per_s": rate}))
    result = analyse(run(loop("synthetic", 1000), wild))
    (scattered,) = [finding for finding in result.findings if finding.code == "scattered"]
    assert "226 to 6,449" in scattered.evidence
    assert result.confidence is not None
    assert result.confidence.level == "low"


def spread(source: str, rate: float, width: float, repeats: int = 6, **params: Any) -> list[Trial]:
    """Return repeats whose interval has a half-width of ``width`` times the rate."""
    trials = []
    for trial in loop(source, rate, repeats=repeats, **params):
        position = 2 * trial.repeat / (repeats - 1) - 1  # It goes from -1 to 1.
        metrics = {**trial.metrics, "samples_per_s": rate * (1 + width * position)}
        trials.append(replace(trial, metrics=metrics))
    return trials


@pytest.mark.parametrize(
    ("repeats", "width", "level"),
    [
        (2, 0.01, "low"),
        (5, 0.01, "medium"),
        (6, 0.01, "high"),
        (6, 0.08, "medium"),
        (6, 0.18, "low"),
    ],
)
def test_confidence_comes_from_the_interval(repeats: int, width: float, level: str) -> None:
    """High needs six repeats and a half-width below 5 %; medium needs a half-width below 15 %."""
    synthetic = loop("synthetic", 1000, repeats=repeats)
    result = analysed(synthetic, spread("warm", 500, width, repeats=repeats))
    assert result.confidence is not None
    assert result.confidence.level == level


def test_confidence_about_storage_is_never_high_on_an_emulated_device() -> None:
    """Nor is it high if the store is a server on this machine; the headline says both."""
    cold = analysed(loop("synthetic", 1000), loop("cold", 500))
    assert cold.confidence is not None
    assert cold.confidence.level == "medium"
    assert "emulated device" in cold.verdict
    stores = {"data": {"kind": "own-server", "name": "moto"}}
    gpu = [loop("synthetic", 1000, metrics=GPU), loop("store", 500, metrics=GPU)]
    own = analysed(*gpu, environment={"stores": stores})
    assert own.confidence is not None
    assert own.confidence.level == "medium"
    assert own.verdict.endswith("The store runs on this machine.")
    other = analysed(*gpu)
    assert other.confidence is not None
    assert other.confidence.level == "high"
    unknown = analysed(loop("warm", 100))
    assert unknown.verdict.endswith("The device is emulated.")


def test_a_rate_above_its_link_is_a_cache() -> None:
    """A rate above the limit that the config gives for the disk is a finding."""
    params: dict[str, Any] = {"target": "nvme", "operation": "read", "cache": "direct"}
    params |= {"pattern": "sequential"}
    params |= {"block_bytes": 2**20, "parallelism": 4}
    trials = done("disk", params, replace(WARM, asked="direct", label="direct"), mb_per_s=5000.0)
    limits = {"targets": {"nvme": {"mb_per_s": 3500}}}
    assert "nvme gave 5,000" in by_code(trials, limits=limits)["beyond-limit"].evidence
    above = {"targets": {"nvme": {"mb_per_s": 7000}}}
    assert "beyond-limit" not in by_code(trials, limits=above)


def test_a_loader_above_its_link_is_named() -> None:
    """The evidence names the kind of trial, without the operation that only a probe has."""
    finding = by_code(loader(25_000, 2, data="shards@s3"), limits={"stores": {"data": 500}})
    evidence = finding["beyond-limit"].evidence
    assert evidence.startswith("data gave 1,000 MB/s (loader); the store carries 500 at most")


def test_storage_behind_a_target_qualifies_its_figures() -> None:
    """A target in memory, a network mount and a small read-ahead of NFS are findings."""
    params: dict[str, Any] = {"operation": "read", "pattern": "sequential", "cache": "warm"}
    params |= {"block_bytes": 2**20, "parallelism": 4}
    trials = [done("disk", {"target": name, **params}, WARM, mb_per_s=9.0) for name in ("a", "b")]
    targets = {"a": {"kind": "tmpfs"}, "b": {"kind": "nfs", "read_ahead_kb": 128}}
    findings = by_code(*trials, environment={"targets": targets})
    assert "cold on this host; server cache unknown" in findings["target-over-network"].advice
    assert {"target-in-memory", "target-over-network", "nfs-reads-little-ahead"} <= findings.keys()


def test_every_rule_has_its_own_words() -> None:
    """Each code has one rule with a condition and a source."""
    titles = [rule.title for rule in RULES.values()]
    assert all(rule.when and rule.source for rule in RULES.values())
    assert len(titles) > 35


@pytest.mark.parametrize("busy", [0.2, 0.4])
def test_a_narrow_link_is_the_cause_also_where_starts_of_epochs_slow_the_loop(busy: float) -> None:
    """A loop over short data gets 196 of the 300 samples/s of a link; CPUs would gain nothing."""
    link = {(1_000_000, 4): 12.0, (4_000_000, 4): 12.0, (8_000_000, 1): 12.0, (8_000_000, 8): 12.0}
    loaders = [loader(rate, n, data="shards@s3") for n, rate in ((1, 237), (2, 191))]
    metrics = {**STARTS, "cpu_busy_share": busy}
    loops = loop("synthetic", 1996, workers=2), loop("store", 196, workers=2, metrics=metrics)
    result = analysed(*loaders, *loops, probe(link), **PROBED)
    (first,) = [finding for finding in result.findings if finding.primary]
    assert first.code == "slow-store-bandwidth"
    assert result.advice.changes[0].setting in ("resize", "stage")


def test_large_starts_that_are_not_certain_do_not_make_the_device_the_limit() -> None:
    """The device is not named for a loss of 30 % of which starts of epochs take most."""
    trials = [*loop("warm", 700, metrics={**STARTS, "epoch_start_share": 0.29})]
    result = analysed(loop("synthetic", 1000), trials)
    assert "slow-device" not in {finding.code for finding in result.findings}
