"""The page of a run is complete, escaped, without scripts, and the same every time."""

from __future__ import annotations

import base64
import gzip
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from iobench.analysis.analyse import summarised
from iobench.report import render
from iobench.results.result import HostFacts, Result
from iobench.results.trial import Trial
from iobench.runner.run_folder import read, read_tables
from tests.iobench.analysis.made import loader, loop, run
from tests.iobench.analysis.test_hosts import GETS, fewer, on_hosts
from tests.iobench.analysis.test_recommend import DECODE_BOUND, FAR_STORE, ONE_WORKER, SLOW_DEVICE

OLD = Path(__file__).parents[2] / "golden" / "run-schema-1"
HOSTILE = "<img src=x onerror=alert(1)> & 'quoted' {{ 7 * 7 }}"


def page(result: Result) -> str:
    """Return the HTML of the page with plain spaces."""
    return render(result).decode().replace("\u00a0", " ")


def front(text: str) -> str:
    """Return the text before the appendix, without markup."""
    body = text[text.index("<main>") : text.index('id="appendix"')]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def test_the_first_screen_answers_the_four_questions() -> None:
    """It says what is slow, what to change, what that gains, and how many accelerators are fed."""
    first_screen = front(page(run(ONE_WORKER)))
    assert "The loop gets 44 % of what the emulated device can consume." in first_screen
    assert "bottleneck" in first_screen
    assert "Use 2 loader workers instead of 1" in first_screen
    assert "1.60 times" in first_screen
    assert "training.0.workers=2" in first_screen
    assert "DataLoader(num_workers=2)" in first_screen
    assert "this loop, now" in first_screen
    assert "A100" in first_screen
    assert "confidence: high" in first_screen


def test_the_table_of_accelerators_says_how_each_row_came_about() -> None:
    """Rows that were divided are marked as computed, and so is a prediction."""
    first_screen = unescape(front(page(run(ONE_WORKER))))
    assert "this loop, now 0.73 0.36 0.13 computed from the loop's rate" in first_screen
    assert "computed from a predicted rate" in first_screen
    assert "computed from its rate alone" in first_screen
    assert "Computed: samples/s divided by the rate of one device." in first_screen
    assert "Measured:" not in first_screen


def test_the_pass_mark_of_mlperf_storage_stands_beside_its_own_workloads_alone() -> None:
    """Other reports do not define it, and a tuned rate does not have it."""
    for preset in ("H100", None):
        how: dict[str, Any] = {"preset": preset} if preset else {}
        text = page(run(loop("synthetic", 900, **how), loop("cold", 300, **how)))
        assert "90 %" not in text[text.index('id="appendix"') :]
        assert "MLPerf Storage asks for" not in text
    workload: dict[str, Any] = {"preset": "H100-mlperf", "batch_size": 400}
    text = page(run(loop("synthetic", 900, **workload), loop("cold", 300, **workload)))
    assert "MLPerf Storage asks for" in text
    assert "accelerator utilisation (au_mlperf) of at least 90 %" in text
    for rule in ("5 times the memory of the hosts", "500 steps", "a run to warm up, then 5 runs"):
        assert rule in text


@pytest.mark.parametrize("name", ["torch-iterable", "tf-data"])
def test_a_ladder_is_recommended_where_the_loader_has_its_rungs(name: str) -> None:
    """It is not recommended for tf.data, which reads no samples from memory."""
    page_text = page(run(loop("synthetic", 900, loader=name), loop("warm", 300, loader=name)))
    assert ("iobench ladder CONFIG" in page_text) == (name == "torch-iterable")


def test_a_page_without_a_recommendation() -> None:
    """The page says so if the device is the limit, and lists settings without effect."""
    first_screen = front(page(run(SLOW_DEVICE)))
    assert "The device is the limit" in first_screen
    assert "None of the measured changes would make the loop faster." in first_screen
    assert "No effect is expected from: workers" in first_screen


def test_a_run_of_the_device_alone_has_its_rate() -> None:
    """The verdict is the rate of the device, and the confidence counts its repeats."""
    first_screen = front(page(run(loop("synthetic", 900))))
    verdict = "The loop was measured without stored data: the emulated device can consume 900"
    assert f"{verdict} samples/s." in first_screen
    assert "no training loop" not in first_screen
    assert "confidence: high (6 repeats)" in first_screen
    smoke_run = front(page(run(loop("synthetic", 900, repeats=2))))
    assert "smoke run, 2 repeats" in smoke_run
    two_loops = run(loop("synthetic", 900), loop("synthetic", 300, group="h"))
    assert "The loop 'g' was measured without stored data" in unescape(front(page(two_loops)))


def test_tables_that_end_early_say_so() -> None:
    """A table of a large run has its first rows, and a note with the number of rows."""
    trials: list[Trial] = []
    for workers in range(1, 403):
        trials += loader(900, workers, cache="cold", repeats=1)
    trials = [
        replace(trial, metrics={**trial.metrics, "time_to_first_batch_s": 1.0}) for trial in trials
    ]
    text = page(run(trials))
    for name, shown in (("cold", "trials"), ("first-batch", "loops and loaders")):
        section = text[text.index(f'id="{name}"') :]
        section = section[: section.index("</details>")]
        assert section.count("<tr>") == 401
        assert f"These are the first 400 of 402 {shown}" in section
        assert "The raw result has all." in section
    few = page(run(trials[:3]))
    assert "The raw result has all." not in few


def test_qualifications_are_those_of_the_loop() -> None:
    """A store on this machine is named only if the loop reads from it."""
    stores: dict[str, Any] = {"environment": {"stores": {"data": {"kind": "own-server"}}}}
    assert "the store runs on this machine" in front(page(run(FAR_STORE, **stores)))
    assert "the store runs on this machine" not in front(page(run(ONE_WORKER, **stores)))
    assert "smoke run" in front(page(run(ONE_WORKER, repeats=2)))


@pytest.mark.parametrize("trials", [ONE_WORKER, FAR_STORE, DECODE_BOUND, SLOW_DEVICE])
def test_the_page_before_the_appendix_is_short(trials: list[Trial]) -> None:
    """The text before the appendix has fewer than 2,500 words."""
    assert len(front(page(run(trials))).split()) < 2500


def test_every_kind_of_trial_has_its_place() -> None:
    """The page of an old run shows disks, layouts, stores, loaders and loops with their series."""
    result = summarised(read(OLD))
    text = render(result, *read_tables(OLD)).decode()
    for part in ("findings", "loops", "predictions", "cold", "trials", "machine", "config"):
        assert f'id="{part}"' in text, part
    for title in ("Disk", "Object store", "Cost per pipeline stage"):
        assert f"<h2>{title}</h2>" in text, title
    assert "SIGKILL" in text


def test_no_script_and_no_address() -> None:
    """The page loads nothing and runs no script."""
    text = page(run(ONE_WORKER))
    assert "<script" not in text
    assert not re.findall(r'(?:src|href)="(?!#|data:)', text)
    assert "default-src 'none'" in text


def test_names_are_text() -> None:
    """Headings, charts and tables escape markup in names."""
    trials = [*loop("synthetic", 2000, group=HOSTILE), *loop("warm", 900, group=HOSTILE)]
    result = replace(run(trials, loader(900, 1, loader=HOSTILE)), name=HOSTILE)
    text = page(result)
    assert "<img" not in text
    assert "49" not in re.findall(r"onerror=alert.{0,80}", text)[0]
    assert "&lt;img src=x" in text


def test_names_that_are_no_utf8_do_not_stop_a_page() -> None:
    """A name may have lone surrogates, as file names on Linux can."""
    assert render(replace(run(ONE_WORKER), name="bad \udcff"))


def test_the_raw_result_is_in_the_page() -> None:
    """The page contains the saved result for readers who have only the page."""
    result = summarised(run(ONE_WORKER))
    (packed,) = re.findall(r"data:application/gzip;base64,([^\"]+)", page(result))
    content = json.loads(gzip.decompress(base64.b64decode(packed)))
    assert content == json.loads(result.to_json())


def test_one_result_gives_one_page() -> None:
    """Two pages of one result are equal byte by byte."""
    result = run(FAR_STORE)
    assert render(result) == render(result)


def test_charts_have_text_alternatives() -> None:
    """Each drawing has a label, and each bar has a row of a table."""
    text = render(summarised(read(OLD)), *read_tables(OLD)).decode()
    drawings = re.findall(r"<svg[^>]*>", text)
    assert drawings
    for drawing in drawings:
        assert 'role="img"' in drawing
        assert re.search(r'aria-label="[^"]+"', drawing)
    assert '<th scope="row">' in text


def test_readings_of_the_machine_are_drawn_beneath_the_steps() -> None:
    """Readings and steps share one axis of time; a long series is thinned, its outliers kept."""
    trials = [*loop("synthetic", 2000), *loop("warm", 900)]
    trial_id = trials[6].id
    rows = 5000
    times = [i / 100 for i in range(rows)]
    steps = {"time_s": times, "step_end_s": times, "wait_s": [0.001] * (rows - 1) + [9.0]}
    series = pd.DataFrame({"trial": trial_id, **steps})
    samples = pd.DataFrame({"trial": trial_id, "time_s": times, "cpu.user_share": 0.5})
    text = render(run(trials), series, samples).decode()
    assert "<h2>During the trial</h2>" in text
    assert text.count("<polyline") >= 3
    assert len(text) < 300_000


def test_the_legend_names_the_gpu_and_the_disk_of_a_curve() -> None:
    """A GPU's curve has its number, such as ``GPU 0 utilisation``."""
    trials = [*loop("synthetic", 2000), *loop("warm", 900)]
    columns = {
        "cpu.user_share": 0.5,
        "gpu.0_utilisation_share": 0.9,
        "gpu.1_utilisation_share": 0.8,
        "gpu.0_memory_bytes": 1e9,
        "disk.read_bytes_per_s": 2e6,
    }
    samples = pd.DataFrame({"trial": trials[6].id, "time_s": [0.0, 1.0, 2.0], **columns})
    text = render(run(trials), None, samples).decode()
    drawn = text[text.index("<h2>During the trial</h2>") :]
    names = [re.sub("<[^>]+>", "", item) for item in re.findall("<li>(.*?)</li>", drawn)]
    assert names[:4] == ["user", "GPU 0 utilisation", "GPU 1 utilisation", "disk, read"]


def test_no_line_is_drawn_where_the_loop_made_no_steps() -> None:
    """A pause, such as a replay, divides each curve of steps into two lines."""
    trials = loop("warm", 90, repeats=1)
    times = [1.0, 2.0, 3.0, 14.0, 15.0, 16.0]
    steps = {"step_end_s": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "wait_s": [0.5] * 6}
    apart = pd.DataFrame({"trial": trials[0].id, "time_s": times, **steps})
    joined = apart.assign(time_s=apart.step_end_s)
    lines = [render(run(trials), table).decode().count("<polyline") for table in (apart, joined)]
    assert lines == [4, 2]


def test_a_run_without_trials_has_a_page() -> None:
    """The page says that nothing was measured."""
    assert "Nothing could be measured." in page(run())


def test_several_hosts_have_a_table_for_each_kind_of_trial() -> None:
    """The first screen begins with the sum; the tables have all hosts, also failed ones."""
    parts = (on_hosts(GETS, (1.0, 0.5, 1.5)), on_hosts(loader(900, 2), (1.0, 1.0, None)))
    result = replace(run(*parts), hosts=tuple(HostFacts(host) for host in range(3)))
    text = unescape(page(summarised(result)))
    assert "2 of 3 hosts together get 1,800 samples/s; the slowest, host 0, gets 900" in front(text)
    section = text[text.index('id="together"') :].partition("</details>")[0]
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", section))
    assert "Loaders" in plain
    assert "2 of 3" in plain
    assert re.search(r"90(\.0)? \(89\.\d to 90\.\d\) MB/s", plain), plain
    assert "host 1: 15" in plain
    assert "30, 15, 45" in plain
    assert "host 2 6 of 12 it gave no result" in plain
    assert "40 ms" in plain.replace("\u00a0", " ")


def test_the_sum_by_the_number_of_hosts_is_drawn() -> None:
    """There is a curve only if several numbers of hosts were measured."""
    parts = on_hosts(GETS, (1.0, 1.0)), fewer(GETS, (1.5,))
    several_hosts = replace(run(*parts), hosts=(HostFacts(0), HostFacts(1)))
    assert "Sum over hosts by the number of hosts" in page(summarised(several_hosts))
    one_host = replace(run(parts[0]), hosts=(HostFacts(0), HostFacts(1)))
    assert "Sum over hosts by the number of hosts" not in page(summarised(one_host))
    assert "Rate of each host, all at the same time" in page(summarised(one_host))


def test_one_host_has_no_such_section() -> None:
    """The page of a single host has no section about hosts."""
    assert 'id="together"' not in page(run(GETS))
