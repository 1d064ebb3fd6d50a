"""``iobench scale``: the hosts that a number of devices needs, and the cost of the training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dataprep.errors import ConfigError
from iobench.cli.commands.options import Json, RunFolder

_COST_PANEL = "Cost of a training"


def scale(
    run_dir: RunFolder,
    devices: Annotated[
        int | None,
        typer.Option(min=1, help="Number of devices that train together. (default: as in the run)"),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use the published rate of an accelerator, such as H100 or H100-mlperf "
            "(docs/accelerators.md).",
        ),
    ] = None,
    device_rate: Annotated[
        float | None, typer.Option(help="Images/s that one device consumes. (default: as measured)")
    ] = None,
    images_per_s: Annotated[
        float | None, typer.Option(help="Images/s that all devices consume together.")
    ] = None,
    devices_per_host: Annotated[
        int | None,
        typer.Option(
            min=1, help="Devices in each host. (default: the number of GPUs in the run's host)"
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Number of epochs of the training.", rich_help_panel=_COST_PANEL),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Samples in an epoch. (default: as in the run)", rich_help_panel=_COST_PANEL
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file of prices. (default: configs/prices.yaml)",
            rich_help_panel=_COST_PANEL,
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            help="Name of the host's instance type in the file of prices.",
            rich_help_panel=_COST_PANEL,
        ),
    ] = None,
    instance_usd_per_h: Annotated[
        float | None,
        typer.Option(
            *("--usd-per-h", "--instance-usd-per-h"),
            help="Price of a host for one hour.",
            rich_help_panel=_COST_PANEL,
        ),
    ] = None,
    disk_usd_per_gb_month: Annotated[
        float | None,
        typer.Option(help="Price of one GiB of disk for one month.", rich_help_panel=_COST_PANEL),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Name of the training loop. (default: the loop of the verdict)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Calculate from a run how many hosts N devices need, and what the training costs."""
    from dataprep.config.files import read_config
    from iobench.analysis import feeds_table, sizing
    from iobench.analysis.analyse import analyse
    from iobench.analysis.epoch_cost import cost_lines, epoch_cost
    from iobench.config.benchmark import ScaleSettings
    from iobench.config.references import priced
    from iobench.consumers.accelerators import RATES
    from iobench.results.result import errors_naming
    from iobench.runner.run_folder import read

    if device is not None and device not in RATES:
        raise ConfigError(f"--device {device}: known are {', '.join(RATES)}")
    cost_options = _without_none(
        group=group,
        epochs=epochs,
        samples=samples,
        instance=instance,
        instance_usd_per_h=instance_usd_per_h,
        disk_usd_per_gb_month=disk_usd_per_gb_month,
    )
    with errors_naming(run_dir):
        result, cost_settings = priced(read(run_dir), cost_options, prices)
        analysis = analyse(result, group)
        loop = analysis.loop
        scale_options = _without_none(
            devices=devices or (loop.devices if loop is not None else 1),
            images_per_s=images_per_s,
            images_per_s_per_device=device_rate,
            devices_per_host=devices_per_host,
        )
        read_config(ScaleSettings, None, scale_options)  # refuses options that exclude each other
        scaled = sizing.scale(
            result, analysis.capacities, loop, {**scale_options, "device": device}
        )
        costs = epoch_cost(result, loop, cost_settings)
        feeds = feeds_table.feeds(analysis.supplies, loop, analysis.advice, device_rate)
    if as_json:
        content = {"scale": scaled.as_dict(), "cost": costs.as_dict()}
        typer.echo(json.dumps({**content, "feeds": feeds.as_dict() if feeds else None}))
    else:
        lines = [*sizing.scale_lines(scaled)]
        if feeds is not None:
            lines.append(feeds_table.feeds_line(feeds))
        lines += cost_lines(costs)
        for line in lines:
            typer.echo(line)
    if scaled.unknown and costs.unknown:
        raise typer.Exit(2)  # neither the hosts nor the cost could be calculated


def _without_none(**options: float | str | None) -> dict[str, float | str]:
    """The options that have a value, because they are in the command line or have a default."""
    return {name: value for name, value in options.items() if value is not None}
