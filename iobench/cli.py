"""Parse, call, exit code; nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dataprep.command_line import Commands, application, settings, start
from dataprep.names import escape
from iobench.commands.cost import cost
from iobench.commands.scale import scale


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
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List the trials and what they will take, and exit.")
    ] = False,
    like: Annotated[
        Path | None,
        typer.Option(help="With --dry-run: a run's folder, which tells how long trials take."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="With --dry-run: one JSON object on stdout.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Begin although requests may cost over cost_limit_usd.")
    ] = False,
    print_config: Annotated[
        bool, typer.Option("--print-config", help="Print the whole config as YAML and exit.")
    ] = False,
) -> None:
    """Run every trial of a config, save each, and write a report."""
    from dataprep.errors import ConfigError
    from iobench import approval, display, run
    from iobench.config import dump, load
    from iobench.forecast.content import content, totals
    from iobench.forecast.words import text
    from iobench.preview import preview
    from iobench.rundir import default_folder

    loaded = load(config, settings(set_ or [], "data.images=5000"))
    if print_config:
        typer.echo(dump(loaded), nl=False)
        return
    if resume and output is None:
        raise ConfigError("--resume needs --output: the folder of the run to go on with")
    if (like is not None or as_json) and not dry_run:
        raise ConfigError("--like and --json go with --dry-run")
    begun = output if resume else None
    ahead = preview(loaded, resumed=begun, like=like, thorough=dry_run)
    if dry_run:
        typer.echo(json.dumps(content(ahead)) if as_json else text(ahead, loaded.name))
        return
    ask = typer.confirm if approval.on_a_terminal() else None
    approval.require_leave(ahead, loaded.cost_limit_usd, yes=yes, ask=ask)
    folder = output or default_folder(loaded.name)
    done = run.run(loaded, folder, display.choose(), resume=resume, forecast=totals(ahead))
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
def export(
    run_dir: Annotated[Path, typer.Argument(help="The folder of a run.")],
    series: Annotated[
        bool, typer.Option("--series", help="The steps of training loops, not the trials.")
    ] = False,
    samples: Annotated[
        bool, typer.Option("--samples", help="Readings of the machine, not the trials.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="A file, which is written anew. (default: stdout)")
    ] = None,
) -> None:
    """Print a run's trials as CSV, a row a trial."""
    from dataprep.errors import ConfigError
    from iobench import export

    if series and samples:
        raise ConfigError("--series and --samples are two tables: ask for one")
    table = export.series_csv if series else export.samples_csv if samples else export.trials_csv
    data = table(run_dir)
    if output is None:
        typer.echo(data, nl=False)
    else:
        export.write(output, data)


@app.command()
def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    from dataprep.config_schema import editor_schema
    from iobench.config import BenchConfig

    typer.echo(editor_schema(BenchConfig, "A benchmark config of iobench"), nl=False)


@app.command()
def targets(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders. (default: every mounted file system for data)"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Say what each path lies on.

    EBS, instance store, NVMe, SATA, tmpfs, overlay, NFS, Lustre, FUSE and others, with the
    evidence; what cannot be told is unknown.
    """
    from iobench.mounts import mounts
    from iobench.targets import describe_target
    from iobench.targets.listing import data_mounts
    from iobench.targets.words import target_lines

    table = mounts()
    found = {path: describe_target(path, table) for path in paths or data_mounts(table)}
    if as_json:
        named = {
            escape(str(path)): {"is_there": path.exists(), **target}
            for path, target in found.items()
        }
        typer.echo(json.dumps({"targets": named}))
        return
    for path, target in found.items():
        for line in target_lines(escape(str(path)), target, is_there=path.exists()):
            typer.echo(line)


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR",
            help="The base, then new ones: folders of runs or their result.json. With --against "
            "only new ones.",
        ),
    ],
    threshold: Annotated[
        str, typer.Option(metavar="SHARE", help="The smallest change that matters.")
    ] = "5%",
    against: Annotated[
        Path | None,
        typer.Option(metavar="BASELINE", help="The base: a run's folder, or a kept result.json."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs of unlike machines too.")
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="A page of it as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Hold saved runs against each other.

    Exit code 1 on a regression, 2 where they cannot be compared.

    Ratios are new / base with an interval. Of more than two runs a trend is shown, in order of
    time, and the exit code is that of the newest against the base.
    """
    from iobench.comparing import compare_saved, page_name, threshold_share

    if html is not None:
        page_name(html)
    done = compare_saved(runs, against, threshold_share(threshold), force=force)
    if html is not None:
        done.write_page(html)
    typer.echo(done.json if as_json else done.text)
    raise typer.Exit(done.exit_code)


@app.command()
def selftest(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Measure what is known beforehand, on a real clock.

    Exit code 1 where the harness does not find it.
    """
    from iobench.selftest import checks

    found = []
    for check in checks():
        found.append(check.as_dict())
        if not as_json:
            typer.echo(str(check))
    if as_json:
        typer.echo(json.dumps({"checks": found}))
    raise typer.Exit(int(not all(check["ok"] for check in found)))


app.command()(cost)
app.command()(scale)


def main() -> None:
    """Run a command."""
    start(app, IobenchCommands)


if __name__ == "__main__":
    main()
