"""Access mode and client."""

from __future__ import annotations

from dataclasses import replace

import pytest

from iobench.trial import Trial
from tests.iobench.advice.made import advice, run
from tests.iobench.whatif.made import REMOTE, done, fetched, loader, loop, together


def modes(rates: dict[str, float]) -> list[Trial]:
    """A loader over a store, directly and in modes of access."""
    params = {"loader": "torch-iterable", "data": "shards@s3", "cache": "warm", "workers": 2}
    return together(
        *(
            done(
                "loader",
                params if mode == "direct" else {**params, "access": mode},
                REMOTE,
                samples_per_s=rate,
                steady_samples_per_s=rate,
            )
            for mode, rate in rates.items()
        )
    )


def test_the_mode_with_the_highest_rate_is_advised() -> None:
    """Where it is better than what is used now beyond doubt."""
    found = advice(run(modes({"direct": 300.0, "pipe": 400.0, "file": 500.0})))["access"]
    assert (found.state, found.value, found.now) == ("change", "file", "direct")
    assert dict(found.config) == {"loaders.0.access": "file"}
    close = advice(run(modes({"direct": 499.0, "pipe": 400.0, "file": 500.0})))["access"]
    assert (close.state, close.value) == ("keep", "direct")
    one = advice(run(modes({"direct": 300.0, "pipe": 400.0})))["access"]
    assert (one.state, "configs/bench/access.yaml" in one.evidence) == ("unknown", True)
    disk = advice(run(loader(300.0, 2)))["access"]
    assert (disk.state, "lie on a disk" in disk.evidence) == ("keep", True)


def test_a_mode_that_is_slower_than_direct_is_not_advised_to_a_loop() -> None:
    """Its loader alone is faster without any."""
    loops = together(loop("synthetic", 900.0), loop("store", 550.0))
    found = advice(run(loops, modes({"direct": 600.0, "pipe": 300.0, "file": 400.0})))["access"]
    assert (found.state, found.value) == ("keep", "direct")
    assert "direct: 600, which is the best" in found.evidence
    better = advice(run(loops, modes({"direct": 300.0, "pipe": 320.0, "file": 400.0})))["access"]
    assert (better.state, better.value, better.gain) == ("change", "file", None)


def test_modes_are_compared_with_as_many_workers() -> None:
    """Eight of one mode are no better mode than two of another."""
    many = modes({"file": 900.0})
    eight = [replace(t, id=f"{t.id}-8", params={**t.params, "workers": 8}) for t in many]
    found = advice(run(modes({"direct": 500.0, "pipe": 450.0, "file": 400.0}), eight))["access"]
    assert (found.state, found.value) == ("keep", "direct")
    assert "file: 400" in found.evidence
    assert "900" not in found.evidence


def test_the_client_with_the_highest_peak_is_advised() -> None:
    """Beside boto3, by which this package reads."""
    own = [fetched(8 * 10**6, n, 1e8 * n) for n in (1, 4)]
    other = [fetched(8 * 10**6, n, 1.5e8 * n, "obstore") for n in (1, 4)]
    found = advice(run(loader(300.0, 2), *own, *other))["client"]
    assert (found.state, found.value, found.now) == ("change", "obstore", "boto3")
    assert found.gain is not None
    assert found.gain.median == pytest.approx(1.5)
    alike = [fetched(8 * 10**6, n, 1.01e8 * n, "obstore") for n in (1, 4)]
    assert advice(run(loader(300.0, 2), *own, *alike))["client"].state == "keep"
    assert advice(run(loader(300.0, 2), *own))["client"].state == "unknown"


def test_a_loop_over_a_disk_has_no_client_to_change() -> None:
    """What the probe of a store says of clients is told, and changes nothing of that loop."""
    own = [fetched(8 * 10**6, n, 1e8 * n) for n in (1, 4)]
    other = [fetched(8 * 10**6, n, 1.5e8 * n, "obstore") for n in (1, 4)]
    found = advice(run(loop("warm", 300.0), *own, *other))["client"]
    assert found.state == "keep"
    assert found.evidence.startswith("its data lie on a disk; were they on a store: peak MB/s")
    assert "1.5" in found.evidence
