"""``iobench scale``: what N accelerators need, and what training costs, from a saved run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

_COST = "What training costs"


def scale(
    run_dir: Annotated[Path, typer.Argument(help="The folder of a run.")],
    devices: Annotated[
        int | None, typer.Option(min=1, help="That train together. (default: the run's)")
    ] = None,
    device: Annotated[
        str | None, typer.Option(metavar="NAME", help="V100, A100 or H100, with ResNet-50.")
    ] = None,
    device_rate: Annotated[
        float | None, typer.Option(help="Images/s of one device. (default: as measured)")
    ] = None,
    images_per_s: Annotated[float | None, typer.Option(help="Images/s of all devices.")] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="(default: as many GPUs as the run's machine had)")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of the training.", rich_help_panel=_COST)
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Of the whole data set. (default: what the run read)", rich_help_panel=_COST
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="A file such as configs/prices.yaml. (default: that one)", rich_help_panel=_COST
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="Type of the machine in the file of prices.", rich_help_panel=_COST),
    ] = None,
    instance_usd_per_h: Annotated[
        float | None,
        typer.Option(
            *("--usd-per-h", "--instance-usd-per-h"),
            help="Price of an hour of the machine.",
            rich_help_panel=_COST,
        ),
    ] = None,
    disk_usd_per_gb_month: Annotated[
        float | None, typer.Option(help="Price of a GB of disk for a month.", rich_help_panel=_COST)
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The training loop. (default: that of the run's verdict)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Work out hosts and cost for N devices, from what one host gave."""
    from dataprep.config_file import read_config
    from dataprep.errors import ConfigError
    from iobench.analysis.analyse import analyse
    from iobench.analysis.sizing import (
        ACCELERATORS,
        cost,
        cost_lines,
        feeds,
        feeds_line,
        scale_lines,
    )
    from iobench.analysis.sizing import scale as scaled
    from iobench.planning import ScaleSettings
    from iobench.references import priced
    from iobench.result import usable
    from iobench.rundir import read

    if device is not None and device not in ACCELERATORS:
        raise ConfigError(f"--device {device}: known are {', '.join(ACCELERATORS)}")
    costs: dict[str, object] = {
        "group": group,
        "epochs": epochs,
        "samples": samples,
        "instance": instance,
    }
    costs |= {"instance_usd_per_h": instance_usd_per_h}
    costs |= {"disk_usd_per_gb_month": disk_usd_per_gb_month}
    with usable(run_dir):
        given = {key: value for key, value in costs.items() if value is not None}
        result, asked = priced(read(run_dir), given, prices)
        found = analyse(result, group)
        wanted = {
            "devices": devices or (found.loop.devices if found.loop else 1),
            "images_per_s": images_per_s,
            "images_per_s_per_device": device_rate,
            "devices_per_host": devices_per_host,
        }
        told = {key: value for key, value in wanted.items() if value is not None}
        read_config(ScaleSettings, None, told)  # refuses what does not go together
        hosts = scaled(result, found.known, found.loop, {**told, "device": device})
        costing = cost(result, found.loop, asked)
        fed = feeds(found.supplies, found.loop, found.advice, device_rate)
    if as_json:
        stored = {"scale": hosts.as_dict(), "cost": costing.as_dict()}
        typer.echo(json.dumps({**stored, "feeds": fed.as_dict() if fed else None}))
    else:
        for line in scale_lines(hosts):
            typer.echo(line)
        if fed is not None:
            typer.echo(feeds_line(fed))
        for line in cost_lines(costing):
            typer.echo(line)
    if hosts.unknown and costing.unknown:
        raise typer.Exit(2)  # nothing could be told
