"""The verdict, findings, page and table of a watched loop agree."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iobench.analysis.analyse import Analysis, analyse
from iobench.machine.sampling import Samples
from iobench.report import render
from iobench.results.result import Result
from iobench.results.trial import Trial
from iobench.runner.run_folder import read
from iobench.watching import Finished
from iobench.watching.report import write
from iobench.watching.session import WatchedLoader, WatchSettings
from tests.iobench.watching.logged import Record, packed
from tests.iobench.watching.simulated import BATCH, SimulatedLoader, recorded

# The link carries 290 samples/s, and the device takes 2,000. 1,000 samples fit into the read-ahead.
AHEAD = SimulatedLoader(batch_s=BATCH / 290, queue=50, ahead=50)
FULL = SimulatedLoader(batch_s=BATCH / 290, queue=50, full=50)
STEADY = SimulatedLoader(batch_s=BATCH / 290)
STEP_S = BATCH / 2000
# The sentence is the same for a host and for a GPU.
GRADE = re.compile(r"waits for data ([\d.]+) % of its time, which is (fine|moderate|high)")


def report_in(folder: Path, records: Sequence[Record]) -> Path:
    """Write the report of one loader into a folder, which is returned."""
    settings = WatchSettings("", "mine", "2026-11-22T12:00:00+00:00", 2.0, [])
    loaders = [WatchedLoader("train")]
    write(folder, settings, loaders, packed(*records), Samples({}, 0.0, ()), announced_end=True)
    return folder


def text_of(page: bytes) -> str:
    """Return the text of a page without markup."""
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.decode())).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("loader", "batches", "epochs", "in_verdict", "in_table"),
    [
        (AHEAD, 50, 1, ", at 253 to 2,000 samples/s; its device", "253 to 2,000"),
        (AHEAD, 50, 3, ", at 253 samples/s; its device", "253"),
        (FULL, 50, 1, ", at an unknown rate; its device", "unknown"),
        (STEADY, 60, 1, ", at 290 samples/s; its device", "290"),
    ],
)
def test_a_rate_is_one_figure_or_a_range_or_unknown(
    tmp_path: Path,
    loader: SimulatedLoader,
    batches: int,
    epochs: int,
    in_verdict: str,
    in_table: str,
) -> None:
    """The verdict, the page and the table of a notebook agree."""
    folder = report_in(tmp_path, recorded(loader, batches, STEP_S, epochs=epochs))
    assert in_verdict in read(folder).summary["verdict"]
    page = text_of((folder / "report.html").read_bytes())
    assert f"{in_verdict} was not measured separately" in page
    assert f"train {in_table} " in page
    assert f"<td>{in_table}</td>" in Finished([folder])._repr_html_()
    assert ("the rate is" in page) == (in_table not in ("253", "290"))


def test_the_first_batch_and_the_starts_of_epochs_are_on_the_page(tmp_path: Path) -> None:
    """Both are on the first screen and in the table of a notebook."""
    folder = report_in(tmp_path, recorded(AHEAD, 50, STEP_S, epochs=2))
    page = text_of((folder / "report.html").read_bytes())
    first_screen = page[: page.index("Appendix")]
    assert "The first batch came after 3.45 s." in first_screen
    assert "Later epochs wait 3.45 s for their first batch." in first_screen
    table = Finished([folder])._repr_html_()
    assert table.count("<td>3.45</td>") == 2
    assert "GPU" not in table


def result_with(**metrics: Any) -> Result:
    """Return a result with one watched loop that has these metrics."""
    usual: dict[str, Any] = {"wait_share": 0.5, "seconds": 100.0, "steps": 1000}
    params = {"loader": "train"}
    trial = Trial("watch", "watch", params, 0, "done", {**usual, **metrics}, seconds=100.0)
    return Result("mine", "2026-11-22T12:00:00+00:00", {}, {"watch": {}}).with_trial(trial)


def waiting_codes(result: Analysis) -> list[str]:
    """Return the codes of the findings about waiting and about the starts of epochs."""
    codes = [finding.code for finding in result.findings]
    return [code for code in codes if code.startswith("waiting") or code == "epoch-starts"]


SHARES = st.floats(0, 1).map(lambda share: round(share, 3))


@settings(deadline=None)
@given(SHARES, st.none() | SHARES, SHARES)
def test_verdict_and_findings_grade_one_figure(
    host: float, device: float | None, of_starts: float
) -> None:
    """The grade is that of the GPU's idle share if measured, and else of the host's waiting."""
    metrics: dict[str, Any] = {"wait_share": host, "cpu_busy_share": 0.2}
    metrics |= {"epoch_start_share": host * of_starts, "epoch_start_s": 1.0}
    if device is not None:
        metrics |= {"device_wait_share": device}
        metrics |= {"device_epoch_start_share": device * of_starts}
    result = analyse(result_with(**metrics))
    stated = GRADE.search(result.verdict)
    assert stated is not None
    share = host if device is None else device
    assert float(stated[1]) == pytest.approx(share * 100, abs=0.51)
    if share < 0.05:
        assert stated[2] == "fine"
    else:
        assert stated[2] == ("high" if share > 0.2 else "moderate")
    waiting = [code for code in waiting_codes(result) if code != "epoch-starts"]
    assert waiting == (["waiting-workers"] if stated[2] == "high" else [])
    if stated[2] == "fine":
        assert not waiting_codes(result)


def test_a_gpu_that_computes_while_the_host_waits_is_fine() -> None:
    """Verdict, findings and page agree, and the verdict also has the host's waiting."""
    result = analyse(result_with(device_wait_share=0.01, epoch_start_share=0.3, epoch_start_s=3.0))
    assert result.verdict == (
        "The GPU of your loop waits for data 1.0 % of its time, which is fine; the host waits 50 %."
    )
    assert not waiting_codes(result)
    page = text_of(render(result.result))
    assert "None of the measured changes would make the loop faster." in page


def test_a_gpu_that_waits_is_a_finding_and_a_change() -> None:
    """The page does not say that nothing would make the loop faster."""
    result = analyse(result_with(device_wait_share=0.4, cpu_busy_share=0.2))
    assert result.verdict.startswith("The GPU of your loop waits for data 40 % of its time")
    (finding,) = [finding for finding in result.findings if finding.code == "waiting-workers"]
    assert "its GPU waits for data 40 % of its time, the host 50 %" in finding.evidence
    assert finding.share == 0.4
    page = text_of(render(result.result))
    assert "None of the measured changes would make the loop faster." not in page
    assert "Use more workers: DataLoader(num_workers=..., prefetch_factor=...)" in page


LOSS = {"samples": 9000, "samples_per_s": 90.0, "ceiling_samples_per_s": 180.0, "loss_share": 0.5}


def test_a_measured_loss_is_the_verdict_the_finding_and_the_gain() -> None:
    """Both rates are given, and the host's waiting is another figure."""
    result = analyse(result_with(**LOSS, cpu_busy_share=0.2))
    assert result.verdict == (
        "Your loop loses 50 % of its rate to its loader, which is high: 90 of 180 samples/s; the "
        "host waits for data 50 % of its time."
    )
    (finding,) = [finding for finding in result.findings if finding.code == "waiting-workers"]
    assert finding.primary
    assert finding.share == 0.5
    assert "its loader costs 50 % of its rate; it waits 50 % of its time" in finding.evidence
    (entry,) = result.summary["watched"]
    assert entry["ceiling_samples_per_s"]["median"] == 180
    assert entry["loss_share"]["median"] == 0.5
    page = text_of(render(result.result))
    first_screen = page[: page.index("Appendix")]
    assert "Loss 50 %: a step on a batch that the loop already has" in first_screen
    assert "at most 2.00 times, measured without the loader" in first_screen
    assert "the loop without its loader 5.56 ms" in first_screen
    assert "its loader 5.56 ms" in first_screen
    assert "train 90 180 50 % 50.0 % " in page
    assert "its device was not measured separately" not in page


def test_a_loop_that_waits_and_loses_nothing_is_fine() -> None:
    """The loss decides if the host waits while its GPU computes."""
    result = analyse(result_with(**{**LOSS, "samples_per_s": 178.2, "loss_share": 0.01}))
    assert result.verdict.startswith(
        "Your loop loses 1.0 % of its rate to its loader, which is fine: 178 of 180 samples/s"
    )
    assert not waiting_codes(result)
    (finding,) = [finding for finding in result.findings if finding.code == "slow-device"]
    assert finding.primary
    page = text_of(render(result.result))
    assert "None of the measured changes would make the loop faster." in page


def test_a_loss_below_zero_is_none() -> None:
    """Two rates may differ by chance; the summary keeps the negative figure."""
    result = analyse(result_with(**{**LOSS, "samples_per_s": 181.8, "loss_share": -0.01}))
    assert result.verdict.startswith("Your loop loses 0.0 % of its rate to its loader")
    assert result.summary["watched"][0]["loss_share"]["median"] == -0.01


@pytest.mark.parametrize(
    ("low", "high", "grade", "code"),
    [
        (0.4, 0.6, "high", "waiting"),
        (0.1, 0.4, "moderate to high", ""),
        (0.0, 0.04, "fine", "slow-device"),
    ],
)
def test_a_range_of_the_loss_is_a_range(low: float, high: float, grade: str, code: str) -> None:
    """A cause is named only if the lower end is high."""
    metrics = {"samples": 9000, "samples_per_s_low": 180 * (1 - high)}
    metrics |= {"samples_per_s_high": 180 * (1 - low), "ceiling_samples_per_s": 180.0}
    result = analyse(result_with(**metrics, loss_share_low=low, loss_share_high=high))
    assert f" % of its rate to its loader, which is {grade}: " in result.verdict
    causes = [f for f in result.findings if f.code in ("waiting", "slow-device")]
    assert [(finding.code, finding.share) for finding in causes] == ([(code, low)] if code else [])


def test_an_unknown_rate_has_a_ceiling_and_no_loss() -> None:
    """The waiting is graded, and the verdict has the ceiling."""
    result = analyse(result_with(samples=9000, ceiling_samples_per_s=180.0))
    assert result.verdict == (
        "Your loop waits for data 50 % of its time, which is high, at an unknown rate; without its "
        "loader it takes 180 samples/s."
    )


def test_runs_of_earlier_versions_have_one_rate() -> None:
    """They have a rate without a rule, or none if batch sizes are unknown."""
    with_rate = analyse(result_with(samples=9000, samples_per_s=90.0))
    assert ", at 90 samples/s" in with_rate.verdict
    assert "samples/s" not in analyse(result_with()).verdict
    assert " rate" not in analyse(result_with()).verdict
