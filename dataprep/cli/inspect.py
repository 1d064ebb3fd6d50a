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
        typer.Argument(metavar="OUTPUT_OR_SHARD", help="A path or s3:// address; any shard."),
    ],
    split: Annotated[
        str | None, typer.Option(metavar="SPLIT", help="One split of an output.")
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="The format to read, where an output has two."),
    ] = None,
    record: Annotated[
        int | None, typer.Option(metavar="N", help="Show one record, counted from 0.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Save the image of --record as it is.")
    ] = None,
    contact_sheet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw images on a sheet: .png or .jpg.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page about an output: .html.")
    ] = None,
    images: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=1000, help="Images on the sheet or page. (default: 48)"
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY", help="Count and show samples: 'label < 100 and source_width >= 64'."
        ),
    ] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Show what an output, shard or record contains."""
    from dataprep.cli.output import show
    from dataprep.inspection import inspect as inspect_target

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
