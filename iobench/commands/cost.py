"""``iobench cost``: what training costs, from a run that is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def cost(
    run_dir: Annotated[Path, typer.Argument(help="The folder of a run with a training loop.")],
    group: Annotated[
        str | None, typer.Option(help="The training loop. (default: that of the run's verdict)")
    ] = None,
    epochs: Annotated[int | None, typer.Option(help="Until training is done.")] = None,
    samples: Annotated[
        int | None, typer.Option(help="Of the whole data set. (default: of what the run read)")
    ] = None,
    instance: Annotated[
        str | None, typer.Option(help="Type of the machine in the file of prices.")
    ] = None,
    instance_usd_per_h: Annotated[
        float | None, typer.Option(help="What an hour of the machine costs you.")
    ] = None,
    disk_usd_per_gb_month: Annotated[
        float | None, typer.Option(help="What a GB of the disk under the data costs a month.")
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="A file such as configs/prices.yaml. (default: that one)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what training costs with what the run's loop got.

    Dollars an epoch and to a number of epochs: hours that the device works and waits, requests,
    storage; and from which epoch on resizing beforehand or staging to a local disk pays.
    """
    from iobench.cost import cost as costing
    from iobench.cost.words import lines
    from iobench.references import priced
    from iobench.result import usable
    from iobench.rundir import read

    given = {
        "group": group,
        "epochs": epochs,
        "samples": samples,
        "instance": instance,
        "instance_usd_per_h": instance_usd_per_h,
        "disk_usd_per_gb_month": disk_usd_per_gb_month,
    }
    told = {key: value for key, value in given.items() if value is not None}
    with usable(run_dir):
        result, asked = priced(read(run_dir), told, prices)
        found = costing(result, asked)
        said = [json.dumps(found)] if as_json else list(lines(found))
    for line in said:
        typer.echo(line)
    if found["unknown"]:
        raise typer.Exit(2)  # nothing could be told
