"""``dataprep verify``: read shards again, and report faults."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from dataprep.cli.options import EndpointUrl, Json, OneSplit, Output, StoreSettings, store_options

if TYPE_CHECKING:
    from dataprep.checking import Depth


def verify(
    output: Output,
    split: OneSplit = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Compare sizes, checksums and receipts. Read no shard.")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Also decode every image.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Report samples that are also in SPLIT. Check more only with --quick or --deep.",
        ),
    ] = None,
    fail_on_leakage: Annotated[
        bool, typer.Option("--fail-on-leakage", help="Exit with 1 if --against finds such samples.")
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Number of threads. (default: one per CPU)"),
    ] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Read shards again and report faults."""
    from dataprep.checking import Verification, leakage
    from dataprep.checking import verify as verify_output
    from dataprep.cli.output import show
    from dataprep.config.shard_config import DaskOptions
    from dataprep.errors import ConfigError

    if quick and deep:
        raise ConfigError("--quick and --deep exclude each other: give one")
    if fail_on_leakage and not against:
        raise ConfigError("--fail-on-leakage needs --against SPLIT")
    options = store_options(endpoint_url, set_)
    leaks = leakage(output, split, against, options=options) if against else ()
    reports: tuple[Verification, ...] = ()
    if quick or deep or not against:
        depth = _depth(quick=quick, deep=deep)
        workers = workers or DaskOptions().worker_count
        reports = verify_output(output, split, depth=depth, workers=workers, options=options)
    if as_json:
        content = {"splits": [report.as_dict() for report in reports]}
        if against:
            content["leakage"] = [leak.as_dict() for leak in leaks]
        show(json.dumps(content))
    else:
        for report in reports:
            show(str(report))
        for leak in leaks:
            show(str(leak))
    has_faults = not all(report.ok for report in reports)
    has_leakage = any(leak.groups for leak in leaks)
    if has_faults or (fail_on_leakage and has_leakage):
        raise typer.Exit(1)


def _depth(*, quick: bool, deep: bool) -> Depth:
    """Return how thorough the verification is."""
    if quick:
        return "quick"
    return "deep" if deep else "full"
