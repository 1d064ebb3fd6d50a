"""``iobench report`` and ``iobench export``: a saved run as a page, as CSV or as a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dataprep.errors import ConfigError
from dataprep.message_text import counted
from dataprep.name_encoding import escape
from iobench.cli.commands.options import RunFolder


def report(run_dir: RunFolder) -> None:
    """Draw the report again from a saved result."""
    from iobench.results.result import errors_naming
    from iobench.runner.run_folder import redraw

    with errors_naming(run_dir):
        page = redraw(run_dir)
    typer.echo(escape(str(page)))


def export(
    run_dir: RunFolder,
    series: Annotated[
        bool,
        typer.Option("--series", help="Print the steps of training loops instead of the trials."),
    ] = False,
    samples: Annotated[
        bool,
        typer.Option(
            "--samples",
            help="Print readings of the machine (CPU, disk, network, GPU) instead of the trials.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(help="Write to this file, and replace it if it exists. (default: stdout)"),
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a trace for Perfetto, a timeline of loops, workers and readings: x.json or "
            "x.json.gz.",
        ),
    ] = None,
) -> None:
    """Print the trials of a run as CSV, or write a trace of the run."""
    from iobench.results.result import errors_naming
    from iobench.runner.run_folder import Table, run_csv, write_file

    if series and samples:
        raise ConfigError("--series and --samples are two tables: give only one of them")
    if trace is not None:
        if series or samples or output is not None:
            raise ConfigError("--trace writes its own file: do not combine it with other options")
        _export_trace(run_dir, trace)
        return
    table: Table = "trials"
    if series:
        table = "series"
    if samples:
        table = "samples"
    with errors_naming(run_dir):
        data = run_csv(run_dir, table)
    if output is None:
        typer.echo(data, nl=False)
        return
    _require_folder(output)
    write_file(output, data)


def _export_trace(run_dir: Path, file: Path) -> None:
    """Write the trace of a run. Print its size, and on stderr the data that it lacks.

    Raises:
        ConfigError: the folder of the file does not exist.
    """
    from iobench.results.result import errors_naming
    from iobench.runner.run_folder import run_trace, write_file

    _require_folder(file)
    with errors_naming(run_dir):
        trace = run_trace(run_dir)
        data = trace.encoded(compress=file.suffix == ".gz")
    write_file(file, data)
    size = f"{counted(trace.processes, 'trial')}, {counted(len(trace.events), 'event')}"
    typer.echo(f"{escape(str(file))}: {size}; open it in https://ui.perfetto.dev")
    for line in trace.lacking:
        typer.echo(line, err=True)


def _require_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise ConfigError(
            f"cannot write {str(file)!r}: there is no folder {str(file.parent)!r}, create it first"
        )
