"""Parse, call, exit code; nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dataprep.command_line import Commands, application, settings, start
from dataprep.counted import counted
from dataprep.names import escape


class IobenchCommands(Commands):
    """iobench's commands."""

    program = "iobench"
    interrupted = "interrupted: what was measured is kept, --resume goes on"


app = application(
    IobenchCommands, "Storage and loader throughput against what a training loop consumes."
)


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="A YAML file; see configs/bench/.")],
    output: Annotated[
        Path | None, typer.Option(help="The run's folder. (default: reports/NAME-TIME)")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any key: --set data.images=5000, --set training.0.steps=50.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --output.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the trials and exit.")] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the whole config as YAML and exit.")
    ] = False,
) -> None:
    """Run every trial of a config, save each, and write a report."""
    from dataprep.errors import ConfigError
    from iobench import display, run
    from iobench.config import dump, load
    from iobench.plan import trials
    from iobench.rundir import default_folder
    from iobench.words import point_words

    loaded = load(config, settings(set_ or [], "data.images=5000"))
    if print_config:
        typer.echo(dump(loaded), nl=False)
        return
    if dry_run:
        specs = trials(loaded)
        for spec in specs:
            typer.echo(point_words(spec))
        typer.echo(counted(len(specs), "trial"), err=True)
        return
    if resume and output is None:
        raise ConfigError("--resume needs --output: the folder of the run to go on with")
    folder = output or default_folder(loaded.name)
    done = run.run(loaded, folder, display.choose(), resume=resume)
    typer.echo(done.result.summary["verdict"])
    typer.echo(escape(str(folder / "report.html")))
    typer.echo(done.counts, err=True)
    raise typer.Exit(done.exit_code)


@app.command()
def report(run_dir: Annotated[Path, typer.Argument(help="The folder of a run.")]) -> None:
    """Draw the report again from the saved result, without measuring."""
    from iobench.rundir import redraw

    typer.echo(escape(str(redraw(run_dir))))


@app.command()
def selftest(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Measure what is known beforehand, on a real clock: does the harness find it?"""
    from iobench.selftest import checks

    found = []
    for check in checks():
        found.append(check.as_dict())
        if not as_json:
            typer.echo(str(check))
    if as_json:
        typer.echo(json.dumps({"checks": found}))
    raise typer.Exit(int(not all(check["ok"] for check in found)))


def main() -> None:
    """Run a command."""
    start(app, IobenchCommands)


if __name__ == "__main__":
    main()
