"""What storage and loaders supply, each measured apart."""

from __future__ import annotations

from iobench.summary.supplies import disks, layouts, loaders, object_stores
from iobench.trial import Trial
from tests.iobench.summary.made import COLD, one


def disk(target: str, block: int, rate: float, repeat: int = 0, **changed: str) -> Trial:
    """A read of ``target``."""
    params = {
        "target": target,
        "operation": "read",
        "pattern": "sequential",
        "block_bytes": block,
        "parallelism": 1,
        "cache": "direct",
        **changed,
    }
    return one("disk", params, repeat=repeat, mb_per_s=rate)


def get(size: int, connections: int, rate: float, client: str = "boto3") -> Trial:
    """GETs of a store."""
    params = {
        "store": "s3",
        "client": client,
        "operation": "get",
        "object_bytes": size,
        "connections": connections,
    }
    return one("object", params, mb_per_s=rate)


def test_best_of_each_disk_by_what_was_done() -> None:
    """The point with the highest median, its params beside it; kinds of access stay apart."""
    trials = [
        *(disk("nvme", 4096, rate, n) for n, rate in enumerate([10.0, 2000.0, 20.0])),
        *(disk("nvme", 1 << 20, rate, n) for n, rate in enumerate([900.0, 1000.0, 1100.0])),
        disk("nvme", 4096, 5000.0, cache="warm"),
        disk("ebs", 4096, 99.0),
        disk("ebs", 4096, 98.0, engine="fio"),
    ]
    found = {(e["target"], e["cache"], e.get("engine")): e for e in disks(trials)}
    assert len(found) == 4
    best = found["nvme", "direct", None]
    assert (best["block_bytes"], best["mb_per_s"]["median"]) == (1 << 20, 1000.0)
    assert (best["mb_per_s"]["low"], best["mb_per_s"]["repeats"]) == (900.0, 3)


def test_a_store_has_a_peak_and_what_reaches_it() -> None:
    """The smallest object and the fewest connections with 95 % of the peak, by client."""
    trials = [
        get(1000, 1, 1.0),
        get(8_000_000, 1, 100.0),
        get(8_000_000, 4, 390.0),
        get(8_000_000, 16, 400.0),
        get(1_000_000, 16, 385.0),
        get(1000, 16, 5.0),
        get(8_000_000, 16, 800.0, client="obstore"),
    ]
    boto3, obstore = object_stores(trials)
    assert (boto3["store"], boto3["client"], boto3["operation"]) == ("s3", "boto3", "get")
    assert boto3["peak_mb_per_s"] == 400
    assert boto3["object_bytes_95"] == 1_000_000
    assert boto3["connections_95"] == 4
    assert obstore["peak_mb_per_s"] == 800
    assert (boto3["mb_per_s"]["median"], boto3["cpu_s_per_gb"]) == (400, None)


def test_a_clients_processor_time_is_that_at_its_peak() -> None:
    """Not the one of a point that it is not chosen for."""
    costs = {4: 3.0, 16: 5.0}
    trials = [
        one("object", dict(get(10**6, count, 0.0).params), mb_per_s=10.0 * count, cpu_s_per_gb=s)
        for count, s in costs.items()
    ]
    (found,) = object_stores(trials)
    assert (found["connections"], found["cpu_s_per_gb"]["median"]) == (16, 5.0)


def test_each_loader_point_is_an_entry() -> None:
    """With its params, its rates, its time to first batch, and what it took."""
    params = {"loader": "raw", "data": "shards@disk", "cache": "cold", "workers": 2}
    trials = [
        one(
            "loader",
            params,
            repeat=n,
            samples_per_s=rate,
            mb_per_s=rate / 10,
            time_to_first_batch_s=1.5,
            memory_bytes=int(rate) * 1_000_000,
            cpu_s_per_1000_samples=2.5,
            cold=COLD,
        )
        for n, rate in enumerate([100.0, 300.0, 200.0])
    ]
    trials.append(one("loader", {**params, "loader": "null", "data": ""}, samples_per_s=1e6))
    raw, null = loaders(trials)
    assert {key: raw[key] for key in params} == params
    assert raw["samples_per_s"]["median"] == 200
    assert raw["mb_per_s"]["median"] == 20
    assert raw["time_to_first_batch_s"]["median"] == 1.5
    assert raw["memory_bytes"]["median"] == 200_000_000
    assert raw["cpu_s_per_1000_samples"]["repeats"] == 3
    assert raw["label"] == "cold"
    assert (null["mb_per_s"], null["memory_bytes"], null["label"]) == (None, None, "")


def test_layouts_are_entries_of_their_own() -> None:
    """Whole shards, records, files."""
    params = {"data": "files@disk", "access": "files", "cache": "warm", "parallelism": 1}
    (found,) = layouts([one("layout", params, samples_per_s=50.0, mb_per_s=5.0)])
    assert (found["access"], found["samples_per_s"]["median"]) == ("files", 50)


def test_nothing_supplies_nothing() -> None:
    """No trial, no entry."""
    assert [part([]) for part in (disks, layouts, loaders, object_stores)] == [[]] * 4
