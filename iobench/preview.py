"""A run before it begins: what it will take, and leave to begin one that costs money."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from dataprep.dataset import open_dataset
from dataprep.errors import DataprepError
from dataprep.prices import price_at, read_prices
from dataprep.sources import open_source
from dataprep.stores import StoreOptions
from dataprep.stores.s3_bucket import S3Bucket
from iobench.config import BenchConfig
from iobench.data.given import expanded
from iobench.data.settings import DataSettings
from iobench.errors import NotApproved
from iobench.forecast import Billed, Facts, Forecast, cost, forecast, lies_on_a_store, point_of
from iobench.others import clashes, others
from iobench.plan import places_of, trials
from iobench.result import usable
from iobench.rundir import differing_machine, holds_run, read
from iobench.trial import Trial, TrialSpec

Ask = Callable[[str], bool]


def preview(
    config: BenchConfig, *, resumed: Path | None = None, like: Path | None = None
) -> Forecast:
    """What ``config`` will take, without writing anything.

    Args:
        config: what is asked for.
        resumed: the folder of a run that is gone on with: what is done there is not done again.
        like: the folder of another run, which says how long trials take, as ``resumed`` does.

    Raises:
        ResultError: ``like`` holds no run.
        ConfigError: no such file of prices.
    """
    specs = trials(config)
    begun = read(resumed) if resumed is not None and holds_run(resumed) else None
    model = read(like) if like is not None else None
    done = {trial.id for trial in begun.trials if trial.status == "done"} if begun else set()
    to_come = [spec for spec in specs if spec.id not in done]
    problems = list(clashes(to_come))
    differing = differing_machine(model.environment) if model else ""
    if differing:
        problems.append(f"times are those of another machine ({differing} differ)")
    earlier = [trial for run in (model, begun) if run is not None for trial in run.trials]
    billed = dict(_billed(config, to_come, problems))
    with usable(*[run for run in (like, resumed) if run is not None]):
        seconds = _seconds(earlier)
    facts = Facts(
        billed=billed,
        samples=_samples(config.data, problems) if any("@s3" in name for name in billed) else None,
        seconds=seconds,
        problems=problems,
        others=others(to_come),
    )
    timeout_s, before = config.trial_timeout_s, len(specs) - len(to_come)
    return forecast(config.name, config.data, to_come, facts, timeout_s, before)


def require_leave(found: Forecast, limit_usd: float, *, yes: bool, ask: Ask | None) -> None:
    """Make sure that requests cost no more than ``limit_usd``, or that somebody wants it so.

    ``ask`` puts a question to a person; None where there is nobody to ask.

    Raises:
        NotApproved: the answer is no, or there is nobody to ask.
    """
    if yes or (found.usd is not None and found.usd <= limit_usd):
        return
    what = f"{cost(found)}; cost_limit_usd is {limit_usd:g}"
    if ask is None:
        raise NotApproved(
            f"{what}: give --yes, or --set cost_limit_usd=DOLLARS; --dry-run says what costs what"
        )
    if not ask(f"{what}. Begin?"):
        raise NotApproved("not begun: nothing was measured, nothing was written")


def on_a_terminal() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _seconds(earlier: Sequence[Trial]) -> dict[str, float]:
    """Medians of what trials of a point took, starts included."""
    points: dict[str, list[float]] = defaultdict(list)
    for trial in earlier:
        if trial.status == "done" and trial.seconds > 0:
            points[point_of(trial.kind, trial.params)].append(trial.seconds)
    return {point: statistics.median(each) for point, each in points.items()}


def _billed(
    config: BenchConfig, specs: Sequence[TrialSpec], problems: list[str]
) -> Iterator[tuple[str, Billed]]:
    """Places on Amazon's S3; an endpoint of anybody else has no price, and no place here."""
    data = config.data
    targets = config.object_store.targets if config.object_store else ()
    stores = {f"store/{target.label}": (target.uri, target.store) for target in targets}
    path = Path(config.prices).expanduser() if config.prices else None
    for name in dict.fromkeys(name for spec in specs for name in places_of(spec)):
        if "@s3" in name:
            straight = lies_on_a_store(name, data)
            bucket = data.bucket
            stores[name] = (straight, data.store) if straight else (bucket.uri, bucket.store)
        uri, options = stores.get(name, ("", StoreOptions()))
        if uri.startswith("s3://") and _is_amazon(uri, options, problems):
            price, about = price_at(read_prices(path), options)
            whose = config.prices or "example prices, to be edited"
            yield name, Billed(uri, price, f"{whose}: {about}")


def _is_amazon(uri: str, options: StoreOptions, problems: list[str]) -> bool:
    """By the endpoint of boto3: an option, the environment and its config file can name one."""
    try:
        server = S3Bucket(uri, options).connect().meta.endpoint_url
    except DataprepError as error:
        problems.append(f"{uri}: {error}")
        return options.endpoint_url is None
    host = urlsplit(server).hostname or ""
    return host.endswith((".amazonaws.com", ".amazonaws.com.cn"))


def _samples(data: DataSettings, problems: list[str]) -> int | None:
    """How many images there are: by a manifest, a listing, or as many as are drawn."""
    try:
        if data.shards is not None:
            shards = expanded(data.shards)
            with open_dataset(shards, data.split, options=data.store) as found:
                return len(found)
        if data.source is not None:
            return len(open_source(expanded(data.source), options=data.store).list())
    except (DataprepError, OSError) as error:
        problems.append(f"the data could not be counted: {error}")
        return None
    return data.images
