"""``dataprep stage``: copy an output, or a share of it, to this host."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from dataprep.cli.options import EndpointUrl, Json, OneSplit, Output, StoreSettings, store_options


def stage(
    output: Output,
    dest: Annotated[
        str, typer.Argument(metavar="DEST", help="The folder for the copy, on this host.")
    ],
    split: OneSplit = None,
    format: Annotated[
        str | None,
        typer.Option(metavar="FORMAT", help="The format to copy. (default: all formats)"),
    ] = None,
    host: Annotated[
        str | None,
        typer.Option(
            metavar="I/N", help="Copy share I of N, with I from 0, or auto. (default: everything)"
        ),
    ] = None,
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Copy an output, or a share of its shards, to this host."""
    from dataprep.cli.output import CopyProgress, show
    from dataprep.job.parts import Part
    from dataprep.reading.staging import stage as copy_output

    copies = copy_output(
        output,
        dest,
        split=split,
        format=format,
        host=Part.parse(host, "--host") if host else None,
        options=store_options(endpoint_url, set_),
        display=CopyProgress(),
    )
    if as_json:
        show(json.dumps({"splits": [asdict(copy) for copy in copies]}))
    else:
        for copy in copies:
            show(str(copy))
