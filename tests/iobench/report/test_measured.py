"""The figures behind a rate on the page: starts of epochs, balance, tails and ranks."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from typing import Any

import pytest

from iobench.report import render
from iobench.results.result import Result
from iobench.results.trial import Trial
from tests.iobench.analysis.made import done, loader, loop, run
from tests.iobench.analysis.test_fed_accelerators import side_by_side

STEADY: dict[str, Any] = {
    "rate_rule": "steady",
    "samples": 15_000,
    "batches": 240,
    "fetched_samples": 15_150,
    "fetched_bytes": 606_000_000,
    "balance": 1.01,
    "epoch_start_share": 0.0,
    "time_to_first_batch_s": 0.8,
}
EPOCHS: dict[str, Any] = {
    "rate_rule": "epochs",
    "samples": 3_000,
    "batches": 48,
    "fetched_samples": 3_000,
    "fetched_bytes": 120_000_000,
    "balance": 1.0,
    "epoch_start_share": 0.6,
    "epoch_start_s": 0.42,
    "time_to_first_batch_s": 2.2,
    "epochs": [{}, {}, {}],
}
NO_RATE: dict[str, Any] = {
    "rate_rule": "bounds",
    "samples": 5_000,
    "samples_per_s_low": 290.0,
    "samples_per_s_high": 1256.0,
}


def page_text(result: Result) -> str:
    """Return the text of the page without markup."""
    text = render(result).decode()
    body = re.sub(r"<[^>]+>", " ", text[text.index("<main>") :])
    return re.sub(r"\s+", " ", unescape(body))


def part(result: Result, name: str) -> str:
    """Return the text of one part of the appendix, which is empty if the page lacks the part."""
    text = render(result).decode()
    match = re.search(rf'<div id="{name}">(.*?)</details>', text, re.DOTALL)
    if match is None:
        return ""
    without_markup = re.sub(r"<[^>]+>", " ", match[1])
    return re.sub(r"\s+", " ", unescape(without_markup))


def without_rate(trials: list[Trial], **metrics: Any) -> list[Trial]:
    """Return the trials without their rates and with these metrics, such as bounds of a rate."""
    rates = ("samples_per_s", "mb_per_s")
    results = []
    for trial in trials:
        others = {name: value for name, value in trial.metrics.items() if name not in rates}
        results.append(replace(trial, metrics={**others, **metrics}))
    return results


def lead(result: Result) -> str:
    """Return the sentences below the verdict."""
    text = render(result).decode()
    match = re.search(r'<p class="lead">(.*?)(<span|</p>)', text, re.DOTALL)
    assert match is not None
    return re.sub(r"\s+", " ", unescape(match[1])).strip()


def test_the_lead_names_loss_waiting_and_starts() -> None:
    """Each figure has its own name and an explanation."""
    metrics = {**STEADY, "epoch_start_s": 0.12, "wait_share": 0.4}
    sentences = lead(run(loop("synthetic", 2000), loop("warm", 1000, metrics=metrics)))
    assert sentences.startswith("1,000 of 2,000 samples/s. Loss 50.0 % (")
    assert "): a step on data in the device's memory takes that much less time." in sentences
    assert "Waiting 40.0 %: in that share of the time the device has no batch." in sentences
    assert "The first batch came after 800 ms." in sentences
    assert sentences.endswith("Later epochs wait 120 ms for their first batch.")


def test_starts_are_the_main_figure_of_data_that_fit_into_the_read_ahead() -> None:
    """The first sentence says so for a loop, and for loaders without a loop."""
    begin = (
        "The data fits into the loader's read-ahead, so the starts of epochs are the main figure: "
        "60.0 % of the time. The first batch came after 2.20 s. Later epochs wait 420 ms for "
        "their first batch."
    )
    assert lead(run(loop("synthetic", 2000), loop("warm", 500, metrics=EPOCHS))).startswith(begin)
    alone = [replace(trial, metrics={**trial.metrics, **EPOCHS}) for trial in loader(900, 2)]
    assert lead(run(alone)).startswith(begin)


def test_a_loop_without_its_devices_rate_has_a_lead() -> None:
    """The lead has the loop's rate and its waiting."""
    sentences = lead(run(loop("warm", 500, metrics={"wait_share": 0.3})))
    expected = "500 samples/s. Waiting 30.0 %: in that share of the time the device has no batch."
    assert sentences == expected


def test_starts_are_in_the_appendix_without_their_parts_too() -> None:
    """The starts are shown for loops on several devices, which report no parts of them."""
    trials = [*loop("synthetic", 2000), *loop("warm", 500, metrics=EPOCHS)]
    appendix_part = part(run(trials), "first-batch")
    assert "start of a later epoch" in appendix_part
    assert "2.20 s 420 ms 60.0 %" in appendix_part
    assert "synthetic" not in appendix_part


def test_the_balance_stands_beside_each_rate() -> None:
    """Fetched samples and bytes stand beside consumed ones, with the rule as text."""
    trials = [*loop("synthetic", 2000), *loop("warm", 1000, metrics=STEADY)]
    appendix_part = part(run(trials, loop("cold", 500, metrics=EPOCHS)), "counted")
    steady_rule = "steady state: 240 batches, at least 20 rounds"
    steady_balance = "15,150 samples, 606 MB 15,000 samples, 600 MB 1.010"
    assert f"1,000 {steady_rule} {steady_balance}" in appendix_part
    epochs_rule = "3 whole epochs with their starts"
    epochs_balance = "3,000 samples, 120 MB 3,000 samples, 120 MB 1.000"
    assert f"500 {epochs_rule} {epochs_balance}" in appendix_part
    assert "share of the data" not in appendix_part


def test_dropped_samples_and_loaders_without_a_count_are_named() -> None:
    """Dropped samples are named, and an empty cell is explained."""
    dropped = {**EPOCHS, "dropped_samples": 24}
    appendix_part = part(run(loop("warm", 500, metrics=dropped)), "counted")
    assert "24 samples dropped from partial batches" in appendix_part
    uncounted = {k: v for k, v in STEADY.items() if not k.startswith(("fetched", "balance"))}
    appendix_part = part(run(loop("warm", 500, metrics=uncounted)), "counted")
    assert "at least 20 rounds 15,000 samples, 600 MB" in appendix_part
    assert "A cell is empty if the loader does not count the fetched samples." in appendix_part


@pytest.mark.parametrize(("share", "expected"), [(0.25, "25.0 %"), (1.0, ""), (None, "")])
def test_the_share_that_warm_trials_read_is_named_below_the_whole(
    share: float | None, expected: str
) -> None:
    """The share has a column if a trial read only a part of the data."""
    metrics = STEADY if share is None else {**STEADY, "warm_share": share}
    table = part(run(loop("warm", 500, metrics=metrics)), "counted")
    assert ("share of the data" in table) == bool(expected)
    assert expected in table


def test_a_rate_that_is_not_known_is_a_range_everywhere() -> None:
    """Verdict, lead, table of rates and list of trials have the range."""
    trials = without_rate(loop("warm", 500), **NO_RATE)
    result = run(loop("synthetic", 2000), trials)
    assert "The loop gets between 290 and 1,256 samples/s" in page_text(result)
    assert lead(result).startswith("Between 290 and 1,260 of 2,000 samples/s.")
    assert "between 290 and 1,260" in part(result, "counted")
    assert "between 290 and 1,260 samples/s" in part(result, "trials")


def test_a_loader_without_a_rate_is_shown_by_its_range() -> None:
    """The verdict and the chart of loaders have the range."""
    text = page_text(run(without_rate(loader(500, 2), **NO_RATE)))
    assert "The fastest loader is torch-iterable from shards@disk: between 290 and 1,256" in text
    assert "The rates of loaders whose batches are discarded." in text


def test_results_of_the_former_rule_have_no_balance() -> None:
    """The page of an older result has neither a balance nor a rung for starts."""
    result = run(loop("synthetic", 2000), loop("warm", 1000))
    assert part(result, "counted") == ""
    assert "start of each epoch" not in page_text(result)


def test_the_starts_of_epochs_are_a_part_of_the_step() -> None:
    """The bar of a step and the chart of the ladder show the starts."""
    text = page_text(run(loop("synthetic", 2000), loop("warm", 500, metrics=EPOCHS)))
    assert "start of each epoch" in text
    assert "+ start of each epoch" in text
    assert "All parts except the device's own work make up the loss" in text


@pytest.mark.parametrize(
    ("batches", "row"),
    [
        (60, "60 50 ms needs 40 more steps needs 940 more steps"),
        (240, "240 50 ms 80 ms needs 760 more steps"),
        (2_000, "2,000 50 ms 80 ms 120 ms"),
    ],
)
def test_quantiles_that_need_more_steps_say_how_many(batches: int, row: str) -> None:
    """p90 needs a hundred steps, and p99 a thousand."""
    metrics = {**STEADY, "batches": batches, "step_s_p50": 0.05}
    if batches >= 100:
        metrics["step_s_p90"] = 0.08
    if batches >= 1_000:
        metrics["step_s_p99"] = 0.12
    assert row in part(run(loop("warm", 500, metrics=metrics)), "latencies")


def test_first_steps_of_epochs_are_not_behind_the_quantiles() -> None:
    """Quantiles of 102 steps in three epochs are over 99 steps."""
    metrics = {**EPOCHS, "batches": 102, "step_s_p50": 0.05}
    appendix_part = part(run(loop("warm", 500, metrics=metrics)), "latencies")
    assert "99 50 ms needs 1 more step needs 901 more steps" in appendix_part


def test_latencies_of_requests_are_shown_where_they_were_measured() -> None:
    """The probe has quantiles, and a loop over the store has means."""
    params: dict[str, Any] = {"store": "s3", "client": "boto3", "operation": "get"}
    params |= {"object_bytes": 1_000_000, "connections": 4}
    quantiles: dict[str, Any] = {"first_byte_s_p50": 0.02, "first_byte_s_p90": 0.05}
    quantiles |= {"total_s_p50": 0.04, "total_s_p90": 0.07}
    probe = done("object", params, None, mb_per_s=50.0, requests=400, **quantiles)
    gets = {"store_requests": 120, "store_first_byte_s": 0.015, "store_get_s": 0.06}
    appendix_part = part(run(probe, loop("store", 500, metrics=gets)), "latencies")
    assert "400 20 ms 50 ms needs 600 more requests" in appendix_part
    assert "40 ms 70 ms needs 600 more requests" in appendix_part
    assert "120 15 ms 60 ms" in appendix_part


def test_each_rank_stands_beside_the_mean_and_the_slowest() -> None:
    """The mean is computed as in MLPerf Storage's DLIO."""
    appendix_part = part(run(side_by_side(2, 0.93, rate=370)), "loops")
    assert "rank 0 95.0 % 185" in appendix_part
    assert "rank 1 93.0 % 185" in appendix_part
    assert "mean, computed like in MLPerf Storage's DLIO 94.0 %" in appendix_part
    assert "slowest rank 93.0 %" in appendix_part


def test_accelerators_side_by_side_are_on_the_first_screen() -> None:
    """The first screen has the measured row with its limit; a table has each rank."""
    result = run(side_by_side(1, 0.97), side_by_side(2, 0.71, rate=300))
    text = page_text(result)
    first = text[: text.index("Appendix")]
    assert "this host, side by side" in first
    assert "With 2, the slowest computes 71 % of the time" in first
    table = part(result, "compared")
    assert "200 img/s, torch-iterable, warm 2 300 150, 150 72.0 % 71.0 % no: " in table


def test_figures_that_are_no_evidence_recommend_nothing() -> None:
    """The page does not say that nothing would help."""
    trials = loop("warm", 500, metrics={**STEADY, "balance": 1.4})
    text = page_text(run(loop("synthetic", 2000), trials))
    assert "No change is recommended, because the figures are not reliable enough." in text
    assert "None of the measured changes would make the loop faster." not in text
