"""Parse, call, exit code; nothing else."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import typer

from dataprep.cli.program import Commands, GroupedCommand, application, start
from dataprep.names import escape
from iobench.commands import options
from iobench.commands.scale import scale


class IobenchCommands(Commands):
    """iobench's commands."""

    interrupted: ClassVar = dict.fromkeys(
        ("run", "ladder"), ": what was measured is kept, --resume goes on"
    )


app = application(
    "iobench",
    "Storage and loader throughput against what a training loop consumes.",
    IobenchCommands,
)


@app.command(cls=GroupedCommand)
def run(
    config: options.Config,
    output: options.Output = None,
    set_: options.Set = None,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    like: options.Like = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object.", rich_help_panel="With --dry-run")
    ] = False,
    yes: options.Yes = False,
    print_config: options.PrintConfig = False,
    verbose: options.Verbose = False,
) -> None:
    """Run the trials of a config and write a report.

    Keys that people set (--set KEY=VALUE): data.source or data.shards, repeats,
    training.0.consumer, .model, .batch_size, .loader, .workers, .inputs, and loaders.0.workers.
    docs/benchmark-config.md has all keys.
    """
    from dataprep.config_file import parse_settings
    from dataprep.errors import ConfigError
    from iobench.analysis.analyse import result_lines
    from iobench.commands.running import Asked, measured
    from iobench.config import load

    if (like is not None or as_json or verbose) and not (dry_run or print_config):
        raise ConfigError("--like, --json and --verbose go with --dry-run")
    loaded = load(config, parse_settings(set_ or []))
    asked = Asked(output, resume, dry_run, like, as_json, yes, print_config, verbose)
    done = measured(loaded, asked)
    if done is None:
        return
    for line in result_lines(done.result.summary):
        typer.echo(escape(line))
    typer.echo(escape(str(done.folder / "report.html")))
    typer.echo(done.counts, err=True)
    raise typer.Exit(done.exit_code)


@app.command(cls=GroupedCommand)
def ladder(
    config: options.Config,
    output: options.Output = None,
    set_: options.Set = None,
    resume: options.Resume = False,
    dry_run: options.DryRun = False,
    like: options.Like = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    yes: options.Yes = False,
    print_config: options.PrintConfig = False,
    verbose: options.Verbose = False,
) -> None:
    """Measure what each part between storage and device adds to a training step.

    The config's training loops run again with one real part more each time. A question mark: not
    distinguishable from zero.
    """
    from dataprep.config_file import parse_settings
    from iobench.analysis.analyse import result_lines
    from iobench.commands.climbing import climbing
    from iobench.commands.ladder_text import text
    from iobench.commands.running import Asked, measured
    from iobench.config import load

    loaded = climbing(load(config, parse_settings(set_ or [])))
    asked = Asked(output, resume, dry_run, like, as_json, yes, print_config, verbose)
    done = measured(loaded, asked)
    if done is None:
        return
    summary, page = done.result.summary, escape(str(done.folder / "report.html"))
    if as_json:
        found = {"verdict": summary["verdict"], "ladder": summary["ladder"], "report": page}
        typer.echo(json.dumps(found))
    else:
        typer.echo(text(summary["ladder"]))
        for line in (*result_lines(summary), page):
            typer.echo(escape(line))
    typer.echo(done.counts, err=True)
    raise typer.Exit(done.exit_code)


@app.command()
def report(run_dir: Annotated[Path, typer.Argument(help="The folder of a run.")]) -> None:
    """Draw the report again from a saved result."""
    from iobench.result import usable
    from iobench.rundir import redraw

    with usable(run_dir):
        page = redraw(run_dir)
    typer.echo(escape(str(page)))


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
    """Print a run's trials as CSV."""
    from dataprep.errors import ConfigError
    from iobench import export
    from iobench.result import usable

    if series and samples:
        raise ConfigError("--series and --samples are two tables: ask for one")
    table = export.series_csv if series else export.samples_csv if samples else export.trials_csv
    with usable(run_dir):
        data = table(run_dir)
    if output is None:
        typer.echo(data, nl=False)
    else:
        export.write(output, data)


@app.command()
def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    from dataprep.config_file import editor_schema
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
    """Identify the storage behind each path: EBS, NVMe, NFS, FUSE and others, with evidence."""
    from iobench.machine.mounts import data_mounts, mounts
    from iobench.machine.storage import describe_target, target_lines

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
        for line in target_lines(escape(str(path)), target, exists=path.exists()):
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
    """Compare saved runs: did a change help?

    Loops are paired by their group, everything else by its settings. Exit code 1 on a regression, 2
    where runs cannot be compared. Of several runs the newest decides.
    """
    from iobench.comparing import compare_saved, page_name, threshold_share
    from iobench.result import usable

    if html is not None:
        page_name(html)
    share = threshold_share(threshold)
    with usable(*filter(None, (against, *runs))):
        done = compare_saved(runs, against, share, force=force)
        if html is not None:
            done.write_page(html)
        said = done.json if as_json else done.text
    typer.echo(said)
    raise typer.Exit(done.exit_code)


@app.command()
def advise(
    run_dir: Annotated[Path, typer.Argument(help="The folder of a run.")],
    emit_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a config that dataprep shard runs."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The training loop. (default: that of the run's verdict)")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Recommend what to change, with the predicted gain.

    --emit-config writes a config for dataprep shard and prints how to measure again.
    """
    from iobench.advising import advise_saved
    from iobench.result import usable

    with usable(run_dir):
        found = advise_saved(run_dir, group)
        said = found.json if as_json else found.text
        then = found.write_config(emit_config) if emit_config is not None else ""
    typer.echo(said)
    if then:
        typer.echo(then, err=as_json)


@app.command()
def selftest(
    rounds: Annotated[
        int,
        typer.Option(min=2, max=100, help="Of delays: more where other programs are busy."),
    ] = 3,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Check the benchmark against known delays: three to four minutes.

    Injected delays at fetch, decode, augmentation and copy must be found on their rungs of the
    ladder and named by a finding, else the exit code is 1.
    """
    from iobench.selftest import run

    ok = run(rounds, as_json=as_json, say=typer.echo, note=partial(typer.echo, err=True))
    raise typer.Exit(int(not ok))


app.command(cls=GroupedCommand)(scale)
app.command("cost", hidden=True)(scale)


def main() -> None:
    """Run a command."""
    start(app)


if __name__ == "__main__":
    main()
