"""``dataprep plan``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dataprep.cli.options import Json, takes_job


@takes_job
def plan(
    config: Any,
    readers: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Ranks times loader workers that read the shards."),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A file such as configs/prices.yaml, to estimate costs."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate shards, size, time and cost without writing."""
    from dataprep.cli.output import Terminal, show
    from dataprep.job.plan_command import plan as run

    given = {"readers": readers, "prices": prices}
    options = {key: value for key, value in given.items() if value is not None}
    asked = config.model_copy(update={"plan": config.plan.model_copy(update=options)})
    found = run(asked, note=Terminal().note)
    show(found.to_json() if as_json else found.to_text())
