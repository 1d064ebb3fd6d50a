"""``verify`` and ``inspect``: what looks at shards that exist."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dataprep.commands.options import (
    EndpointUrl,
    Json,
    OneSplit,
    Output,
    StoreSettings,
    echo,
    refuse,
    store_options,
)


def verify(
    output: Output,
    split: OneSplit = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Sizes, receipts and the store's ETags; reads no shard.")
    ] = False,
    deep: Annotated[bool, typer.Option("--deep", help="Decode every image as well.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="SPLIT",
            help="Report samples that are in SPLIT too. Reads two tables, and shards only with "
            "--quick or --deep.",
        ),
    ] = None,
    fail_on_leakage: Annotated[
        bool, typer.Option("--fail-on-leakage", help="End with 1 if there are any.")
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="(default: one a processor)")] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Re-read what was stored; name the place of each fault."""
    from dataprep.execution import DaskOptions
    from dataprep.verification import leakage
    from dataprep.verification import verify as run

    if quick and deep:
        refuse("--quick and --deep exclude each other: give one")
    if fail_on_leakage and not against:
        refuse("--fail-on-leakage needs --against SPLIT: the split to compare with")
    options = store_options(endpoint_url, set_)
    leaks = leakage(output, split, against, options=options) if against else ()
    found = (
        ()
        if against and not (quick or deep)
        else run(
            output,
            split,
            depth="quick" if quick else "deep" if deep else "full",
            workers=workers or DaskOptions().worker_count,
            options=options,
        )
    )
    if as_json:
        result = {"splits": [one.as_dict() for one in found]}
        if against:
            result["leakage"] = [leak.as_dict() for leak in leaks]
        typer.echo(json.dumps(result))
    else:
        echo("\n".join(str(one) for one in (*found, *leaks)))
    if not all(one.ok for one in found) or (fail_on_leakage and any(leak.groups for leak in leaks)):
        raise typer.Exit(1)


def inspect(
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT_OR_SHARD", help="A path or s3:// URI; a shard may be anybody's."
        ),
    ],
    split: Annotated[str | None, typer.Option(help="One split of an output.")] = None,
    format: Annotated[
        str | None, typer.Option(help="Of a record or picture, where an output has both.")
    ] = None,
    record: Annotated[
        int | None, typer.Option(metavar="N", help="All that one record holds, counted from 0.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Store that record's image, byte for byte.")
    ] = None,
    contact_sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A picture of what is inside: .png or .jpg."),
    ] = None,
    images: Annotated[
        int | None, typer.Option(min=1, max=1000, help="How many are on it. (default: 48)")
    ] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Look into a data set, a shard or a record, reading little."""
    from dataprep.inspection import inspect as run

    found = run(
        target,
        split=split,
        format=format,
        record=record,
        save=save,
        contact_sheet=contact_sheet,
        images=images,
        options=store_options(endpoint_url, set_),
    )
    if as_json:
        typer.echo(json.dumps(found.content))
    else:
        echo(found.text)
    if not found.ok:
        raise typer.Exit(1)
