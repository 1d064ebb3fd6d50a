"""A config run from the command line: shown, asked about, measured, saved."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dataprep.errors import ConfigError

if TYPE_CHECKING:
    from iobench.config import BenchConfig
    from iobench.run import Run


@dataclass(frozen=True, slots=True)
class Asked:
    """How a run was asked for; ``as_json`` is of what ``--dry-run`` says."""

    output: Path | None
    resume: bool
    dry_run: bool
    like: Path | None
    as_json: bool
    yes: bool
    print_config: bool
    verbose: bool


def measured(config: BenchConfig, asked: Asked) -> Run | None:
    """What a run found; None where it was only shown what it would be, on stdout.

    Raises:
        ConfigError: options that do not go together; what ``run`` raises.
    """
    from iobench import display, run
    from iobench.config import dump
    from iobench.forecast import text
    from iobench.preview import on_a_terminal, preview, require_leave
    from iobench.rundir import default_folder

    if asked.print_config:
        typer.echo(dump(config), nl=False)
        return None
    if asked.resume and asked.output is None:
        raise ConfigError("--resume needs --output: the folder of the run to go on with")
    if asked.like is not None and not asked.dry_run:
        raise ConfigError("--like goes with --dry-run")
    begun = asked.output if asked.resume else None
    ahead = preview(config, resumed=begun, like=asked.like)
    if asked.dry_run:
        shown = text(ahead, verbose=asked.verbose)
        typer.echo(json.dumps(ahead.content()) if asked.as_json else shown)
        return None
    ask = typer.confirm if on_a_terminal() else None
    require_leave(ahead, config.cost_limit_usd, yes=asked.yes, ask=ask)
    folder = asked.output or default_folder(config.name)
    return run.run(config, folder, display.choose(), resume=asked.resume, forecast=ahead.totals())
