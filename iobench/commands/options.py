"""Options of commands that run trials."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

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
Resume: TypeAlias = Annotated[
    bool, typer.Option("--resume", help="Go on with the run in --output.")
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Say which trials and what they will take, and exit.")
]
Like: TypeAlias = Annotated[
    Path | None,
    typer.Option(help="With --dry-run: a run's folder, which tells how long trials take."),
]
Verbose: TypeAlias = Annotated[
    bool, typer.Option("--verbose", help="With --dry-run: a line for each trial.")
]
Yes: TypeAlias = Annotated[
    bool, typer.Option("--yes", help="Begin although requests may cost over cost_limit_usd.")
]
PrintConfig: TypeAlias = Annotated[
    bool, typer.Option("--print-config", help="Print the whole config as YAML and exit.")
]
