"""Options of commands that run trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

_DRY = "With --dry-run"
_MORE = "More"

Config: TypeAlias = Annotated[Path, typer.Argument(help="A YAML file; see configs/bench/.")]
Output: TypeAlias = Annotated[
    Path | None, typer.Option(help="The run's folder. (default: reports/NAME-TIME)")
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Any key: --set data.images=5000, --set training.0.steps=50.",
    ),
]
Resume: TypeAlias = Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Print trials, time and cost without measuring.")
]
Like: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="A run's folder, which tells how long trials take.", rich_help_panel=_DRY),
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="A line for each trial.", rich_help_panel=_DRY)
]
Yes: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--yes", help="Begin although requests may cost over cost_limit_usd.", rich_help_panel=_MORE
    ),
]
PrintConfig: TypeAlias = Annotated[
    bool,
    typer.Option("--print-config", help="Print the whole config as YAML.", rich_help_panel=_MORE),
]
