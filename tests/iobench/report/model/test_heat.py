"""Loaders over two settings at once."""

from __future__ import annotations

from iobench.report.model.drawings import Heat
from iobench.report.model.heat import heat_maps
from tests.iobench.report.results import WARM, Run


def test_a_map_for_each_loader_and_state_of_the_cache() -> None:
    """Workers and batch sizes were swept; prefetch was not."""
    charts = heat_maps(Run(repeats=2).loaders().result())
    assert len(charts) == 6
    assert charts[0].title == "tf-data · shards@nvme · warm: samples/s by workers and batch size"
    assert len({chart.title for chart in charts}) == 6
    drawing = charts[0].drawing
    assert isinstance(drawing, Heat)
    assert drawing.columns == ("1", "2", "4", "8", "16")
    assert drawing.rows == ("64", "256")
    assert len(drawing.tiles) == 10


def test_the_fastest_is_the_whole_of_itself() -> None:
    """Shares are of the map's best, and every tile is where its settings are."""
    (drawing, *_) = (chart.drawing for chart in heat_maps(Run(repeats=2).loaders().result()))
    assert isinstance(drawing, Heat)
    best = max(drawing.tiles, key=lambda tile: tile.value)
    assert (best.share, best.column, best.row) == (1.0, 4, 1)
    assert all(0 < tile.share <= 1 for tile in drawing.tiles)


def test_what_was_left_out_leaves_a_hole() -> None:
    """More workers than were worth it have no tile."""
    run = Run(repeats=1)
    for workers, batch in ((1, 8), (2, 8), (1, 16)):
        run._loader("torch-map", "shards@disk", "warm", WARM, workers, batch, 100.0)
    (chart,) = heat_maps(run.result())
    assert isinstance(chart.drawing, Heat)
    assert {(tile.column, tile.row) for tile in chart.drawing.tiles} == {(0, 0), (1, 0), (0, 1)}


def test_one_axis_is_no_map() -> None:
    """A sweep of workers alone is a curve."""
    run = Run(repeats=1)
    for workers in (1, 2, 4):
        run._loader("torch-map", "shards@disk", "warm", WARM, workers, 64, 100.0)
    assert heat_maps(run.result()) == ()
