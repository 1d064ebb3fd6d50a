"""``iobench scale``: what a cluster needs, from a run that is saved."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer


def scale(
    run_dir: Annotated[Path, typer.Argument(help="The folder of a run.")],
    devices: Annotated[int, typer.Option(min=1, help="That train together.")],
    images_per_s: Annotated[
        float | None,
        typer.Option(help="What all of them consume. (default: the run's training loop each)"),
    ] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="(default: as many GPUs as the run's machine had)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what a cluster of devices needs of hosts like the run's.

    Hosts, streams and GB/s from what was measured, where it breaks first, and what is assumed.
    """
    from dataprep.config_file import read_config
    from iobench.planning import ScaleSettings
    from iobench.result import usable
    from iobench.rundir import read
    from iobench.scale import scale as scaled
    from iobench.scale.words import lines

    given = {
        "devices": devices,
        "images_per_s": images_per_s,
        "devices_per_host": devices_per_host,
    }
    told = {key: value for key, value in given.items() if value is not None}
    asked = read_config(ScaleSettings, None, told)
    with usable(run_dir):
        found = scaled(read(run_dir), asked.model_dump())
        said = [json.dumps(found)] if as_json else list(lines(found))
    for line in said:
        typer.echo(line)
    if "parts" not in found:
        raise typer.Exit(2)  # nothing could be told
