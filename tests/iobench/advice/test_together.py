"""All changes at once."""

from __future__ import annotations

from typing import Any

from tests.iobench.advice.made import advice, forms, run
from tests.iobench.whatif.made import loader, loop, together


def test_files_that_are_packed_stay_resized() -> None:
    """Shards of the files, not of the photographs that these were made of."""
    slow = together(
        loader(150.0, 2, loader="torch-folder", data="files@disk", cache="cold"),
        loader(600.0, 2, data="shards@disk", cache="cold"),
        loader(160.0, 2, loader="raw", data="files@disk", cache="cold"),
        loader(9000.0, 2, loader="raw", data="shards@disk", cache="cold"),
        loop("synthetic", 5000.0, loader="torch-folder", form="files"),
        loop("cold", 158.0, loader="torch-folder", form="files"),
    )
    found = advice(run(forms(), slow))
    assert found["sharding"].state == "change"
    assert found["together"].value["data"] == "shards"
    assert found["together"].config["training.0.data"] == "shards"


def test_shards_of_the_size_that_is_advised_are_meant() -> None:
    """All three sizes are as fast: 1 MB is enough, and what is predicted is of it."""
    sweep = together(
        *(
            loader(606.0, 2, data=f"shards-{size}MB@disk", cache="cold", object_bytes=size * 1e6)
            for size in (1, 4, 16)
        )
    )
    photos = together(
        loop("synthetic", 500.0, loader="torch-folder", form="photos"),
        loop("cold", 299.0, loader="torch-folder", form="photos"),
        loader(9000.0, 2, loader="raw", data="photos@disk", cache="cold"),
        loader(9000.0, 2, loader="raw", data="shards@disk", cache="cold"),
    )
    found = advice(run(forms(), sweep, photos))
    assert found["shard_size"].value == 1_000_000
    assert found["together"].value["data"] == "shards-1MB"
    assert found["together"].gain is not None


def test_other_data_want_other_workers() -> None:
    """Photographs want eight on a device of 900; resized ones give as much with four."""
    parts = [forms(workers) for workers in (1, 2, 4, 8)]
    there: dict[str, Any] = {"loader": "torch-folder", "form": "photos"}
    loops = together(loop("synthetic", 900.0, **there), loop("warm", 299.0, **there))
    found = advice(run(*parts, loops))
    assert found["workers"].value == 8
    whole = found["together"]
    assert whole.value["workers"] == 4
    assert "over shards 4 workers are enough" in whole.evidence


def test_fewer_workers_and_nothing_else_are_no_gain() -> None:
    """One worker is enough for the device; that says it all."""
    points = together(loader(300.0, 1), loader(600.0, 2), loader(1200.0, 4))
    found = advice(run(points, loop("synthetic", 100.0), loop("warm", 100.0)))
    assert (found["workers"].state, found["workers"].value) == ("change", 1)
    assert "together" not in found


def test_a_loop_that_gets_what_its_device_takes_needs_nothing() -> None:
    """Its loaders alone were slower, in a worse hour: the model does not hold, the loop is fine."""
    there: dict[str, Any] = {"loader": "torch-folder", "form": "photos"}
    loops = together(loop("synthetic", 900.0, **there), loop("warm", 899.0, **there))
    found = advice(run(forms(), loops))
    assert found["resize"].state == "keep"
    assert "899 of the 900 samples/s that its device takes" in found["resize"].evidence
    assert not [entry for entry in found.values() if entry.state == "change"]


def test_loaders_that_were_measured_with_other_batches_tell_the_form_all_the_same() -> None:
    """The loop has batches of 32, its loaders had 64: what to set is known, and what it brings."""
    there: dict[str, Any] = {"loader": "torch-folder", "form": "photos", "batch_size": 32}
    loops = together(loop("synthetic", 500.0, **there), loop("warm", 299.0, **there))
    found = advice(run(forms(), loops))
    assert found["resize"].state == "change"
    assert dict(found["together"].config) == {
        "training.0.loader": "torch-iterable",
        "training.0.data": "shards",
    }
