"""Count the S3 requests of a planned job, and estimate what the job costs on AWS."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping

from dataprep.config.prices import (
    Prices,
    instance_price_per_h,
    instance_type,
    machine_region,
    region_of,
    storage_price,
)
from dataprep.config.shard_config import ShardConfig
from dataprep.errors import StoreError
from dataprep.formats import get_format
from dataprep.job.calibration import calibration_samples
from dataprep.job.plan_report import Cost, Requests
from dataprep.job.request import Request
from dataprep.job.split_plan import SplitPlan
from dataprep.stores import StoreOptions

_KEYS_PER_LIST = 1_000  # in the answer to one LIST request
_OBJECTS_PER_SPLIT = 6  # beside shards, indexes and receipts: such as the plan and the manifest
_LISTINGS_PER_SPLIT = 3


def requests_by_location(
    request: Request, plans: Mapping[str, SplitPlan], output_key_count: int
) -> dict[str, Requests]:
    """Count the requests to ``source`` and ``output``, for each of them that is on S3.

    The rules are:

    - A listing returns 1,000 keys per request.
    - Each image is read by one GET. If the source reads whole runs, each run of a shard is one GET.
    - Each object is stored by a PUT and confirmed by a HEAD. Before that, the lock is read.
    - Each receipt is read back at the end.
    - Each split needs three listings.
    - Each split needs six more objects. Each of them is also read once.

    Args:
        request: the checked config and its source.
        plans: the plan of each split.
        output_key_count: the number of keys that the output has already.
    """
    requests = {}
    if request.source.uri.startswith("s3://"):
        requests["source"] = _requests_to_source(request, plans)
    if request.config.output.startswith("s3://"):
        requests["output"] = _requests_to_output(request.config, plans, output_key_count)
    return requests


def _requests_to_source(request: Request, plans: Mapping[str, SplitPlan]) -> Requests:
    """Count the requests that list the source and read its samples, also for the calibration."""
    lists = 0
    if request.config.kind in ("imagefolder", "flat"):
        lists = len(request.listing) // _KEYS_PER_LIST + 1
    if request.listing.in_runs:
        return Requests(0, _reads_of_runs(request, plans), lists)
    samples = sum(plan.samples for plan in plans.values())
    return Requests(0, samples + calibration_samples(samples), lists)


def _requests_to_output(
    config: ShardConfig, plans: Mapping[str, SplitPlan], output_key_count: int
) -> Requests:
    """Count the requests that write the output, by the rules of ``requests_by_location``."""
    objects_per_shard = 1 + len(config.format)  # the receipt and a shard per format
    for name in config.format:
        objects_per_shard += len(get_format(name).indexes([]))
    shards = sum(plan.shard_count for plan in plans.values())
    split_objects = _OBJECTS_PER_SPLIT * len(plans)
    objects = shards * objects_per_shard + split_objects
    requests_per_listing = (output_key_count + objects) // _KEYS_PER_LIST + 1
    lists = _LISTINGS_PER_SPLIT * len(plans) * requests_per_listing
    return Requests(objects, 2 * objects + shards + split_objects, lists)


def _reads_of_runs(request: Request, plans: Mapping[str, SplitPlan]) -> int:
    """Count the reads: one for each listed container, and one for each run of each shard."""
    reads = len({*request.listing.containers} - {""})
    for plan in plans.values():
        shards = plan.shards[: plan.samples].tolist()
        runs = set(zip(shards, plan.containers[: plan.samples], strict=True))
        reads += len(runs)
    return reads


def cost_on_aws(
    config: ShardConfig,
    requests: Mapping[str, Requests],
    stored_bytes: int,
    prices: Prices,
    duration_s: float,
) -> Cost | None:
    """Estimate the cost of the requests, of a month of storage, and of the machine.

    Args:
        config: the config of the job.
        requests: the requests of the job, by location.
        stored_bytes: the bytes of all shards in all formats.
        prices: the content of the price file.
        duration_s: how long the job runs, in seconds.

    Returns:
        The cost; None if neither the source nor the output is on AWS, or if the region of one of
        them has no prices. A server with an endpoint of its own is not on AWS.
    """
    requests_cost = month_cost = 0.0
    price_sources: list[str] = []
    for location, counts in requests.items():
        options = _store_options(config)[location]
        if not _is_on_aws(options):
            continue
        price, price_source = storage_price(prices, options)
        if price is None:
            return None
        requests_cost += price.requests_cost(counts.puts, counts.gets, counts.lists)
        if location == "output":
            month_cost = price.month_cost(stored_bytes)
        if price_source not in price_sources:
            price_sources.append(price_source)
    if not price_sources:
        return None
    instance = config.plan.instance or instance_type()
    price_per_h = instance_price_per_h(prices, region_of_prices(config, prices), instance)
    machine_cost = None
    if price_per_h is not None:
        machine_cost = price_per_h * duration_s / 3600
    price_file = str(config.plan.prices) if config.plan.prices else "example prices"
    return Cost(
        requests=requests_cost,
        month=month_cost,
        machine=machine_cost,
        instance=instance,
        currency=prices.currency,
        prices=f"{price_file}: {'; '.join(price_sources)}",
    )


def region_of_prices(config: ShardConfig, prices: Prices) -> str:
    """Return the region in which the machine of a job is assumed to be, for its price.

    This is the region of the output; if only the source is on AWS, the region of the source.
    """
    options = _store_options(config)
    is_output_on_aws = config.output.startswith("s3://") and _is_on_aws(options["output"])
    return region_of(prices, options["output" if is_output_on_aws else "source"])


def _store_options(config: ShardConfig) -> dict[str, StoreOptions]:
    """Return the options of the stores of ``source`` and ``output``."""
    return {"source": config.source_store or config.store, "output": config.store}


def _is_on_aws(options: StoreOptions) -> bool:
    """Whether a bucket with these options is on AWS, and not on a server with its own endpoint."""
    variables = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    return not (options.endpoint_url or any(os.environ.get(name) for name in variables))


def region_warnings(config: ShardConfig) -> Iterator[str]:
    """Warn about buckets that are in another region than this machine."""
    # Imported here, because boto3 is slow to import.
    from dataprep.stores.s3 import S3Store

    own_region = machine_region()
    if not own_region:
        return
    options = _store_options(config)
    for location, store_options in (
        (config.source, options["source"]),
        (config.output, options["output"]),
    ):
        if not location.startswith("s3://") or store_options.endpoint_url:
            continue
        # A bucket that cannot be reached is reported when it is read.
        with contextlib.suppress(StoreError):
            region = S3Store(location, store_options).region()
            if region and region != own_region:
                yield (
                    f"{location} is in {region}, this machine in {own_region}: traffic between "
                    "regions is slow and costs money; use a machine in the bucket's region"
                )
