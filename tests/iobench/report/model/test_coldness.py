"""Cold, and how it is known: a row an epoch, limits, rates over epochs."""

from __future__ import annotations

from typing import Any

from iobench.report.model.coldness import section
from iobench.report.model.drawings import Curves
from iobench.report.model.shapes import Chart, Section, Table, Words
from iobench.result import Result
from iobench.trial import Cold, Trial

COLD = Cold("cold", "cold", 0.0, 1.0, True, limits=("no root",))


def record(number: int, rate: float, **told: Any) -> dict[str, Any]:
    """An epoch that was shown cold unless told."""
    return {
        "number": number,
        "samples": 100,
        "seconds": 100 / rate,
        "samples_per_s": rate,
        "time_to_first_batch_s": 0.5,
        "asked": "cold",
        "resident_before": 0.0,
        "physical_ratio": 1.0,
        "label": "cold",
        "why": "",
        **told,
    }


LEFT = {"asked": "as left", "resident_before": 0.9, "physical_ratio": 0.1, "label": "warm"}


def loop(repeat: int, *epochs: Any, cold: Cold | None = COLD) -> Trial:
    """One repeat of a training loop."""
    params = {"group": "net", "input": "cold", "loader": "raw", "data": "shards@disk"}
    metrics = {"samples_per_s": 90.0, **({"epochs": list(epochs)} if epochs else {})}
    return Trial(f"train/{repeat}", "train", params, repeat, "done", metrics, cold)


def shown(*trials: Trial) -> Section:
    """The section."""
    found = section(Result("r", "", {}, {}, trials))
    assert found is not None
    return found


def table(found: Section) -> Table:
    """Of epochs."""
    return next(b for b in found.blocks if isinstance(b, Table) and b.title.startswith("Each"))


def texts(found: Section) -> list[list[str]]:
    """Its cells."""
    return [[entry.text for entry in row] for row in table(found).rows]


def test_each_epoch_has_a_row() -> None:
    """Of repeats the largest residency, the least ratio, the median rate, the first reason."""
    found = shown(
        loop(0, record(0, 100.0, why="so"), record(1, 400.0, **LEFT, why="90 % were resident")),
        loop(1, record(0, 120.0, resident_before=0.004, physical_ratio=0.97), record(1, 500.0)),
        loop(2, record(0, 110.0), record(1, 600.0)),
    )
    assert texts(found) == [
        ["net, cold", "1", "cold", "cold", "0.40\u00a0%", "0.970", "110", "500\u00a0ms"],
        [
            *("net, cold", "2", "as left", "warm, cold"),
            *("90.0\u00a0%", "0.100", "500", "500\u00a0ms"),
        ],
    ]
    assert [row[3].note for row in table(found).rows] == ["so", ""]
    assert table(found).rows[0][0].note == "3 repeats"


def test_rates_over_epochs_are_drawn() -> None:
    """Of what had several, with the badge in the legend."""
    found = shown(loop(0, record(0, 100.0), record(1, 400.0)))
    (chart,) = (block for block in found.blocks if isinstance(block, Chart))
    assert isinstance(chart.drawing, Curves)
    (curve,) = chart.drawing.curves
    assert [(point.x, point.y) for point in curve.points] == [(1, 100.0), (2, 400.0)]
    assert chart.keys[0].name == "net, cold: cold 100 %, cache-resident"
    alone = shown(loop(0, record(0, 100.0)))
    assert not [block for block in alone.blocks if isinstance(block, Chart)]


def test_what_could_not_be_done_is_said_once() -> None:
    """Whatever number of trials says it; nothing where everything could."""
    found = shown(loop(0, record(0, 1.0)), loop(1, record(0, 1.0)))
    assert Words(("No root.",), listed=True) in found.blocks
    plain = shown(loop(0, record(0, 1.0), cold=Cold("cold", "cold")))
    assert not [block for block in plain.blocks if isinstance(block, Words) and block.listed]


def test_random_reads_are_amplified() -> None:
    """The ratio is called so; what was not counted or told is not made up."""
    found = shown(loop(0, record(0, 1.0, amplification=1.6, physical_ratio=1.6)))
    assert (table(found).rows[0][5].text, table(found).rows[0][5].note) == ("1.60", "amplification")
    unknown = shown(loop(0, record(0, 1.0, physical_ratio=None, resident_before=None)))
    assert texts(unknown)[0][4:6] == ["cannot be told", "not counted"]


def test_trials_of_older_versions_have_a_row_each() -> None:
    """They have no epochs, or another thing of that name."""
    found = shown(loop(0))
    assert texts(found) == [["net, cold", "", "cold", "cold", "0\u00a0%", "1", "", ""]]
    odd = Trial("w", "loader", {"loader": 3}, 0, "done", {"epochs": 4}, Cold("warm", "warm"))
    assert texts(shown(odd))[0][:4] == ["loader", "", "warm", "warm"]


def test_without_a_cache_there_is_no_section() -> None:
    """Nothing was read, or nothing was done."""
    assert section(Result("r", "", {}, {}, (loop(0, cold=None),))) is None
