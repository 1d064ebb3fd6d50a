"""What a planned job asks of S3, and what that costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from dataprep.config import ShardConfig
from dataprep.estimate import sample_size
from dataprep.forecast import Cost, SplitForecast
from dataprep.formats import get_format
from dataprep.job.request import Request
from dataprep.job.split_plan import SplitPlan
from dataprep.prices import Prices, price_at
from dataprep.requests import PutRule, Requests, of_output, of_source
from dataprep.stores.s3 import MULTIPART_FROM_BYTES, PART_BYTES
from dataprep.stores.s3_bucket import another_server

Assume = Callable[[str], None]
_LISTED = ("imagefolder", "flat")


def requests_of(
    request: Request, plans: Mapping[str, SplitPlan], there: int, assume: Assume
) -> dict[str, Requests]:
    """``source`` and ``output`` to the requests of a straight run, of those that are on S3."""
    config, found = request.config, {}
    samples = sum(plan.samples for plan in plans.values())
    if request.source.uri.startswith("s3://"):
        listed = config.kind in _LISTED
        reads = samples + sample_size(samples)
        found["source"] = of_source(len(request.listing), reads, listed=listed)
        if not listed:
            assume(
                f"requests by which a source of kind {config.kind!r} finds its samples are not "
                "counted"
            )
    if config.output.startswith("s3://"):
        kms = (config.store.sse or "").startswith("aws:kms")
        formats = [get_format(name) for name in config.format]
        objects = 1 + sum(1 + len(form.indexes([])) for form in formats)
        rule = PutRule(MULTIPART_FROM_BYTES, PART_BYTES, reads_back=kms)
        shards = [plan.shard_count for plan in plans.values()]
        found["output"] = of_output(shards, objects, there, rule)
    if found:
        assume("no request has to be repeated")
    return found


def cost_of(
    config: ShardConfig,
    requests: Mapping[str, Requests],
    splits: Sequence[SplitForecast],
    prices: Prices,
    assume: Assume,
) -> Cost | None:
    """What they and a month of keeping the shards cost, where anybody can know."""
    if not requests:
        return None
    if (server := _another_server(config)) is not None:
        assume(f"no cost: {server} is not Amazon's S3")
        return None
    price, about = price_at(prices, config.store)
    if price is None:
        assume(f"no cost: {about}; add it to a copy of configs/prices.yaml and give --prices")
        return None
    whose = str(config.plan.prices) if config.plan.prices else "example prices, to be edited"
    stored = sum(sum(one.bytes_by_format.values()) for one in splits)
    return Cost(
        requests=sum(price.of_requests(one) for one in requests.values()),
        month=price.of_a_month(stored) if "output" in requests else 0.0,
        currency=prices.currency,
        prices=f"{whose}: {about}",
    )


def _another_server(config: ShardConfig) -> str | None:
    """The endpoint that is not Amazon's, if there is one."""
    places = ((config.source, config.source_store or config.store), (config.output, config.store))
    servers = (another_server(uri, options) for uri, options in places if uri.startswith("s3://"))
    return next((server for server in servers if server is not None), None)
