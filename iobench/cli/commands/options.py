"""An argument and an option that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
RunFolder: TypeAlias = Annotated[Path, typer.Argument(help="The folder of a run.")]
