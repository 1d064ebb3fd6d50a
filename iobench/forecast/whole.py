"""PURE. A whole run: every trial that is to come, what is made first, and the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from iobench.config import BenchConfig
from iobench.forecast import disks, loops, stores
from iobench.forecast.bounds import Bounds
from iobench.forecast.earlier import Earlier
from iobench.forecast.facts import Facts, StoreFacts
from iobench.forecast.making import Making, steps
from iobench.forecast.predicted import Predicted, moved, requests_of
from iobench.plan import places_of
from iobench.probes.object_store.pool import Objects
from iobench.requests import Requests
from iobench.trial import Params, Trial, TrialSpec

Forecaster: TypeAlias = Callable[[Params, Facts, float], Predicted]

KINDS: Mapping[str, Forecaster] = {
    "disk": disks.disk,
    "layout": disks.layout,
    "object": stores.objects,
    "loader": loops.loader,
    "train": loops.training,
}
_DISK_BYTES_PER_S, _STORE_BYTES_PER_S = 200e6, 100e6


@dataclass(frozen=True, slots=True)
class StoreTotal:
    """All that one store is asked for. ``usd`` is None where nobody knows a price.

    A ``usd`` without a high end may be anything.
    """

    facts: StoreFacts
    read: Bounds
    written: Bounds
    requests: tuple[Requests, Requests | None]
    usd: Bounds | None


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a run will take. ``before`` counts its trials that are measured already.

    ``others``: what other packages bring, ``loader mine`` to ``package 1.0``.
    """

    trials: Sequence[tuple[TrialSpec, Predicted]]
    making: Sequence[Making]
    stores: Mapping[str, StoreTotal]
    before: int
    problems: tuple[str, ...]
    others: Mapping[str, str] = field(default_factory=dict)

    @property
    def steps(self) -> list[Predicted]:
        """All that is done."""
        return [made.predicted for made in self.making] + [found for _, found in self.trials]

    @property
    def likely_s(self) -> tuple[float, int]:
        """About how long, and of how many steps that is not known, which are not in the sum."""
        known = [step.likely_s for step in self.steps if step.likely_s is not None]
        return sum(known), len(self.steps) - len(known)

    @property
    def most_s(self) -> float:
        """So long at most, for all trials."""
        return sum(found.seconds.high or 0.0 for _, found in self.trials)

    @property
    def bytes(self) -> dict[str, Bounds]:
        """Moved in all: ``disk_read``, ``disk_written``, ``store_read``, ``store_written``."""
        return moved(self.steps)

    @property
    def usd(self) -> Bounds:
        """Dollars of requests to Amazon's S3; without a high end where it has no known price."""
        found = Bounds()
        for store in self.stores.values():
            if store.facts.is_amazon:
                found = found.plus(store.usd or Bounds(0.0, None))
        return found

    @property
    def unknown(self) -> list[str]:
        """What cannot be predicted, each once."""
        return list(dict.fromkeys(why for step in self.steps for why in step.unknown))

    @property
    def assumed(self) -> list[str]:
        """What the figures rest on, each once."""
        return list(dict.fromkeys(why for step in self.steps for why in step.assumed))


def forecast(
    config: BenchConfig, specs: Sequence[TrialSpec], facts: Facts, earlier: Iterable[Trial] = ()
) -> Forecast:
    """Predict ``specs``, all trials of ``config``, by what is known of data and stores.

    ``earlier``: trials of a run that is resumed, or of another on the same machine; those that
    ``specs`` no longer has, since they are done, are no part of the forecast.
    """
    told = Earlier(earlier)
    timeout_s = config.trial_timeout_s
    found = [(spec, told.told(spec, predicted(spec, facts, timeout_s))) for spec in specs]
    making = [*_data(config, specs, facts), *_test_files(specs), *_pools(specs)]
    problems = facts.problems
    if config.more_workers_gain is not None and _has_workers_to_raise(specs):
        problems = (*problems, _FEWER)
    return Forecast(
        trials=found,
        making=making,
        stores=_stores([made.predicted for made in making] + [one for _, one in found], facts),
        before=0,
        problems=problems,
    )


_FEWER = (
    "loaders that more workers do not help are not tried with even more (more_workers_gain): "
    "their trials are in these figures"
)


def _has_workers_to_raise(specs: Sequence[TrialSpec]) -> bool:
    return len({spec.params.get("workers") for spec in specs if spec.kind == "loader"}) > 2


def predicted(spec: TrialSpec, facts: Facts, timeout_s: float) -> Predicted:
    """One trial; of a kind that nobody can predict no more than its bound is said."""
    known = KINDS.get(spec.kind)
    if known is None:
        why = f"what trials of kind {spec.kind} take and move"
        return Predicted(Bounds(0.0, timeout_s), None, unknown=(why,))
    found = known(spec.params, facts, timeout_s)
    likely_s = found.likely_s
    return replace(found, likely_s=None if likely_s is None else min(likely_s, timeout_s))


def usd(requests: tuple[Requests, Requests | None], store: StoreFacts) -> Bounds | None:
    """What they cost; None where no price is known."""
    if store.price is None:
        return None
    low, high = requests
    most = None if high is None else store.price.of_requests(high.puts, high.gets, high.lists)
    return Bounds(store.price.of_requests(low.puts, low.gets, low.lists), most)


def _data(config: BenchConfig, specs: Sequence[TrialSpec], facts: Facts) -> Iterator[Making]:
    names = [name for spec in specs for name in places_of(spec) if "/" not in name]
    yield from steps(list(dict.fromkeys(names)), config.data, facts)


def _test_files(specs: Sequence[TrialSpec]) -> Iterator[Making]:
    reads = [s.params for s in specs if s.kind == "disk" and s.params["operation"] == "read"]
    for target, size in dict.fromkeys((p["target"], p["file_bytes"]) for p in reads):
        words = f"a test file of {size / 1e6:,.1f} MB on {target}"
        yield Making(words, disks.test_file(size, _DISK_BYTES_PER_S))


def _pools(specs: Sequence[TrialSpec]) -> Iterator[Making]:
    most: dict[tuple[str, int], int] = {}
    for spec in specs:
        needed = stores.to_be_read(spec.params) if spec.kind == "object" else None
        if needed is not None:
            key = (f"store/{spec.params['store']}", needed.bytes)
            most[key] = max(most.get(key, 0), needed.count)
    for (store, size), count in most.items():
        words = f"{count:,} objects of {size / 1e6:,g} MB to read, in {store}"
        yield Making(words, stores.put(Objects(size, count), store, _STORE_BYTES_PER_S))


def _stores(found: Sequence[Predicted], facts: Facts) -> dict[str, StoreTotal]:
    totals = {}
    for name in dict.fromkeys(step.store for step in found if step.store):
        mine = [step for step in found if step.store == name]
        about = facts.stores.get(name, StoreFacts())
        requests = requests_of(mine)
        bytes_of = moved(mine)
        totals[name] = StoreTotal(
            facts=about,
            read=bytes_of["store_read"],
            written=bytes_of["store_written"],
            requests=requests,
            usd=usd(requests, about),
        )
    return totals
