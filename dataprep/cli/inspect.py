"""``dataprep inspect``: show what an output, a shard or a record contains."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dataprep.cli.options import EndpointUrl, Json, StoreSettings, store_options


def inspect(
    target: Annotated[
        str,
        typer.Argument(
            metavar="OUTPUT_OR_SHARD", help="An output or a shard: a path or s3:// address."
        ),
    ],
    split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="The split of an output. (default: all)")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="The format to read, if an output has several."),
    ] = None,
    record: Annotated[
        int | None, typer.Option(metavar="N", help="Show the record with this number, from 0.")
    ] = None,
    save: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Save the encoded image of --record unchanged."),
    ] = None,
    contact_sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw some images on a sheet: a .png or .jpg file."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a page about an output: an .html file."),
    ] = None,
    images: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            max=1000,
            help="Number of images on the sheet or page. (default: 48)",
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="Show only samples that match: 'label < 100 and source_width >= 64'.",
        ),
    ] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Show what an output, a shard or a record contains."""
    from dataprep.checking.inspection import inspect as inspect_target
    from dataprep.cli.output import show

    inspection = inspect_target(
        target,
        split=split,
        format=format,
        record=record,
        save=save,
        contact_sheet=contact_sheet,
        html=html,
        images=images,
        where=where,
        options=store_options(endpoint_url, set_),
    )
    show(json.dumps(inspection.content) if as_json else inspection.text)
    if not inspection.ok:
        raise typer.Exit(1)
