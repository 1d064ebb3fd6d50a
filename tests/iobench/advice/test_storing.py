"""Access mode and client."""

from __future__ import annotations

import pytest

from iobench.trial import Trial
from tests.iobench.advice.made import advice, run
from tests.iobench.whatif.made import REMOTE, done, fetched, loader, together


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
