"""The table of access modes on its page."""

from __future__ import annotations

from typing import Any

from iobench.report.model import build
from iobench.report.model.access import section
from iobench.report.model.shapes import Section, Table, Words
from iobench.report.page import render
from iobench.result import Result
from iobench.summary import summarise
from iobench.trial import Cold, Trial
from tests.iobench.summary.made import one, result

FIGURES: dict[str, Any] = {
    "samples_per_s": 900.0,
    "time_to_first_batch_s": 2.0,
    "first_epoch_s": 12.0,
    "steady_samples_per_s": 1500.0,
    "disk_needed_bytes": 48_000_000,
    "memory_needed_bytes": 300_000_000,
    "store_read_bytes": 47_000_000,
    "store_requests": 15,
    "data_bytes": 46_000_000,
    "memory_limit_bytes": 2 * 10**9,
}


def trials(access: str, data: str = "shards@s3", **changed: Any) -> list[Trial]:
    """Six repeats of a mode, 1 % apart."""
    params = {"loader": "torch-map", "data": data, "access": access, "workers": 2, "cache": "warm"}
    told = {key: value for key, value in {**FIGURES, **changed}.items() if value is not None}
    cold = Cold("warm", "server cache unknown", cache_resident=access == "file")
    return [
        one(
            "loader",
            params,
            repeat=repeat,
            cold=cold,
            **{key: value * (1 + repeat / 100) for key, value in told.items()},
        )
        for repeat in range(6)
    ]


def made(*found: list[Trial]) -> Result:
    """A run of them, summed up."""
    plain = result([trial for each in found for trial in each])
    return Result(plain.name, plain.started, {}, {}, plain.trials, summarise(plain))


def shown(of: Result) -> tuple[Section, Table]:
    """The section and its table."""
    found = section(of)
    assert found is not None
    (table,) = [block for block in found.blocks if isinstance(block, Table)]
    return found, table


def test_each_mode_has_a_row() -> None:
    """What it took, gave and needed, each with its interval; whether the data fit in memory."""
    lazy: dict[str, Any] = {"disk_needed_bytes": 0, "first_epoch_s": 30.0}
    lazy |= {"steady_samples_per_s": 400.0}
    found, table = shown(made(trials("file"), trials("lazy", data_bytes=3 * 10**9, **lazy)))
    assert found.title == "Access modes"
    assert table.columns == (
        *("mode", "cache shown", "first batch", "first epoch", "steady rate, samples/s"),
        "disk needed",
        *("memory needed", "from the store", "data ÷ memory"),
    )
    cells = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    file, lazily = cells
    assert (file["mode"].text, lazily["mode"].text) == ("file", "lazy")
    assert file["mode"].note == "torch-map"
    assert file["first batch"].text == "2.05\u00a0s"
    assert file["first batch"].note == "2\u00a0s to 2.10\u00a0s"
    assert file["disk needed"].text == "49.2\u00a0MB"
    assert (lazily["disk needed"].text, lazily["disk needed"].note) == ("0\u00a0B", "")
    assert file["from the store"].note.endswith(", 15.4 GETs")
    assert file["data ÷ memory"].note == "fits, cache-resident"
    assert lazily["data ÷ memory"].note == "does not fit"
    words = found.blocks[0]
    assert isinstance(words, Words)
    assert words.lines[0].startswith("For a first epoch file (12.3 s) is the best; from the second")


def test_buffers_stand_beside_the_memory_that_they_are_part_of() -> None:
    """Of streams alone."""
    _, table = shown(made(trials("pipe", shuffle_buffer_bytes=40_000_000)))
    assert table.rows[0][table.columns.index("shuffle buffers")].text == "41\u00a0MB"


def test_a_rate_of_the_first_epoch_is_marked() -> None:
    """Where no later one was seen."""
    _, table = shown(made(trials("pipe", steady_samples_per_s=None, first_epoch_s=None)))
    assert "first epoch" not in table.columns
    rate = table.rows[0][table.columns.index("steady rate, samples/s")]
    assert rate.note.endswith("within the first epoch")


def test_what_a_kernel_does_not_tell_is_left_out() -> None:
    """A column that nothing was measured for is none."""
    _, table = shown(made(trials("file", memory_needed_bytes=None)))
    assert "memory needed" not in table.columns
    _, table = shown(made(trials("file", memory_limit_bytes=None)))
    assert table.rows[0][-1].text == "unknown"


def test_runs_without_modes_have_no_such_section() -> None:
    """Those of an earlier version among them."""
    assert section(made([])) is None
    assert all(part.id != "access" for part in build(made([]), {}).sections)


def test_it_is_on_the_page() -> None:
    """With the sentence, and what memory means."""
    page = render(made(trials("file"), trials("lazy", first_epoch_s=30.0))).decode()
    assert 'id="access"' in page
    assert "is the best; from the second one on" in page
    assert "proportional set size" in page
