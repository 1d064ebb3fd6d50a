"""``dataprep plan``: estimate a job without writing anything."""

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
        typer.Option(
            metavar="N",
            min=1,
            help="Processes that will read the shards: ranks times loader workers.",
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="A file with prices, such as configs/prices.yaml, for the costs."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Estimate shards, size, time and cost. Nothing is written."""
    from dataprep.cli.output import Terminal, show
    from dataprep.job.plan_command import plan as estimate_job

    plan_options = config.plan
    if readers is not None:
        plan_options = plan_options.model_copy(update={"readers": readers})
    if prices is not None:
        plan_options = plan_options.model_copy(update={"prices": prices})
    config = config.model_copy(update={"plan": plan_options})
    estimate = estimate_job(config, note=Terminal().note)
    show(estimate.to_json() if as_json else estimate.to_text())
