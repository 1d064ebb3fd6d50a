"""The command line: options in, one call, its answer in words or as JSON, an exit code."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from dataprep.cli.program import Commands, GroupedCommand, application, start
from dataprep.counted import counted
from dataprep.errors import ConfigError
from dataprep.names import escape

if TYPE_CHECKING:
    from iobench.config import BenchConfig
    from iobench.hosts.settings import HostSettings

_DRY = "With --dry-run"
_MORE = "More"
_HOSTS = "Several hosts at the same time"
_COST = "What training costs"

Config: TypeAlias = Annotated[
    Path, typer.Argument(help="A YAML file; dataprep init copies examples.")
]
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
    typer.Option(help="Estimate the time from this run's folder.", rich_help_panel=_DRY),
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
Hosts: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--hosts",
        min=1,
        metavar="N",
        help="Number of hosts. (default: from Slurm, torchrun or MPI)",
        rich_help_panel=_HOSTS,
    ),
]
Host: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--host",
        min=0,
        metavar="I",
        help="Number of this host, from 0; host 0 writes the report. (default: likewise)",
        rich_help_panel=_HOSTS,
    ),
]
Meeting: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rendezvous",
        metavar="URI",
        help="A folder that all hosts share, or s3://bucket/prefix.",
        rich_help_panel=_HOSTS,
    ),
]
MeetingStore: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--rendezvous-set",
        metavar="KEY=VALUE",
        help="Store options of the rendezvous: --rendezvous-set endpoint_url=URL.",
        rich_help_panel=_HOSTS,
    ),
]
HostTimeout: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--host-timeout",
        min=1,
        metavar="SECONDS",
        help="Longest wait for a host, at the start and before each trial. (default: "
        "trial_timeout_s)",
        rich_help_panel=_HOSTS,
    ),
]
HostCounts: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--host-counts",
        metavar="N,N...",
        help="Also measure each point on so many of the hosts: 1,2,4.",
        rich_help_panel=_HOSTS,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")]
Folder: TypeAlias = Annotated[Path, typer.Argument(help="The folder of a run.")]


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
    config: Config,
    output: Output = None,
    set_: Set = None,
    resume: Resume = False,
    dry_run: DryRun = False,
    like: Like = None,
    as_json: Json = False,
    yes: Yes = False,
    print_config: PrintConfig = False,
    verbose: Verbose = False,
    hosts: Hosts = None,
    host: Host = None,
    rendezvous: Meeting = None,
    rendezvous_set: MeetingStore = None,
    host_timeout: HostTimeout = None,
    host_counts: HostCounts = None,
) -> None:
    """Run the trials of a config and write a report.

    With --rendezvous several hosts run each trial at the same time: start the same command on each
    (docs/many-hosts.md).

    Keys that people set (--set KEY=VALUE): data.source or data.shards, repeats,
    training.0.consumer, .model, .batch_size, .loader, .workers, .inputs, and loaders.0.workers.
    docs/benchmark-config.md has all keys.
    """
    from dataprep.config_file import parse_settings
    from iobench.config import load
    from iobench.hosts.settings import host_settings

    loaded = load(config, parse_settings(set_ or []))
    wait_s = host_timeout or loaded.trial_timeout_s
    meeting = host_settings(host, hosts, rendezvous, rendezvous_set or [], wait_s, host_counts)
    begun = _begun(output, resume)
    if print_config or dry_run:
        _show(loaded, print_config, begun, like, as_json, verbose, meeting)
    elif meeting is not None and meeting.host > 0:
        _refuse_dry(like, verbose)
        _follow(loaded, output, meeting)
    else:
        _refuse_dry(like, verbose)
        _measure(loaded, output, begun, yes=yes, as_json=as_json, meeting=meeting)


@app.command(cls=GroupedCommand)
def ladder(
    config: Config,
    output: Output = None,
    set_: Set = None,
    resume: Resume = False,
    dry_run: DryRun = False,
    like: Like = None,
    as_json: Json = False,
    yes: Yes = False,
    print_config: PrintConfig = False,
    verbose: Verbose = False,
) -> None:
    """Measure what each part of the input adds to a training step.

    The config's training loops run again with one real part more each time. A question mark: not
    distinguishable from zero.
    """
    from dataprep.config_file import parse_settings
    from iobench.config import load
    from iobench.plan import ladder_config

    loaded = ladder_config(load(config, parse_settings(set_ or [])))
    begun = _begun(output, resume)
    if print_config or dry_run:
        _show(loaded, print_config, begun, like, as_json, verbose)
    else:
        _refuse_dry(like, verbose)
        _measure(loaded, output, begun, yes=yes, as_json=as_json, tables=True)


def _show(
    config: BenchConfig,
    whole: bool,
    begun: Path | None,
    like: Path | None,
    as_json: bool,
    verbose: bool,
    meeting: HostSettings | None = None,
) -> None:
    """Print the ``whole`` config, or what running it will take."""
    from iobench.config import dump
    from iobench.forecast import forecast

    if whole:
        typer.echo(dump(config), nl=False)
        return
    ahead = forecast(config, resumed=begun, like=like)
    if meeting is not None:
        ahead = ahead.on_hosts(meeting.hosts, meeting.counts)
    typer.echo(json.dumps(ahead.content()) if as_json else ahead.text(verbose=verbose))


def _refuse_dry(like: Path | None, verbose: bool) -> None:
    if like is not None or verbose:
        raise ConfigError("--like and --verbose go with --dry-run")


def _begun(output: Path | None, resume: bool) -> Path | None:
    """The folder of the run to continue, if any.

    Raises:
        ConfigError: none is named.
    """
    if resume and output is None:
        raise ConfigError("--resume needs --output: the folder of the run to go on with")
    return output if resume else None


def _on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _measure(
    config: BenchConfig,
    output: Path | None,
    begun: Path | None,
    *,
    yes: bool,
    as_json: bool,
    tables: bool = False,
    meeting: HostSettings | None = None,
) -> None:
    """Ask where requests may cost much, measure, and print the result, with ``tables`` of ladders.

    Raises:
        ConfigError: what ``iobench.run`` raises.
    """
    from contextlib import ExitStack

    from iobench import display
    from iobench import run as running
    from iobench.analysis.analyse import result_lines
    from iobench.forecast import forecast, require_leave
    from iobench.hosts.joint_run import leading
    from iobench.rundir import default_folder
    from iobench.words import ladder_table

    ahead = forecast(config, resumed=begun)
    if meeting is not None:
        ahead = ahead.on_hosts(meeting.hosts, meeting.counts)
    ask = typer.confirm if _on_a_terminal() else None
    require_leave(ahead, config.cost_limit_usd, yes=yes, ask=ask)
    folder = output or default_folder(config.name)
    shown = display.choose()
    with ExitStack() as stack:
        leader = None
        if meeting is not None:
            leader = stack.enter_context(leading(meeting, config, shown))
        done = running.run(
            config,
            folder,
            shown,
            resume=begun is not None,
            forecast=ahead.totals(),
            leader=leader,
            host_counts=meeting.counts if meeting is not None else (),
        )
        if leader is not None:
            leader.exit_code = done.exit_code
    summary, page = done.result.summary, escape(str(done.folder / "report.html"))
    if as_json:
        found = {key: summary.get(key) for key in ("verdict", "ladder")}
        typer.echo(json.dumps({**found, "report": page}))
    else:
        if tables:
            typer.echo("\n\n".join(map(ladder_table, summary["ladder"])))
        for line in result_lines(summary):
            typer.echo(escape(line))
        typer.echo(page)
    typer.echo(done.counts, err=True)
    raise typer.Exit(done.exit_code)


def _follow(config: BenchConfig, output: Path | None, meeting: HostSettings) -> None:
    """Measure together with host 0, which writes the report."""
    from iobench import display
    from iobench.hosts.joint_run import follow
    from iobench.rundir import default_folder

    folder = (output or default_folder(config.name)) / f"host-{meeting.host}"
    code = follow(meeting, config, folder, display.choose())
    typer.echo(f"host {meeting.host} of {meeting.hosts}: host 0 writes the report", err=True)
    raise typer.Exit(code)


@app.command()
def report(run_dir: Folder) -> None:
    """Draw the report again from a saved result."""
    from iobench.result import usable
    from iobench.rundir import redraw

    with usable(run_dir):
        page = redraw(run_dir)
    typer.echo(escape(str(page)))


@app.command()
def export(
    run_dir: Folder,
    series: Annotated[
        bool, typer.Option("--series", help="The steps of training loops, not the trials.")
    ] = False,
    samples: Annotated[
        bool, typer.Option("--samples", help="Readings of the machine, not the trials.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(help="A file, which is written anew. (default: stdout)")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write a timeline of loops, workers and readings for Perfetto: x.json, x.json.gz.",
        ),
    ] = None,
) -> None:
    """Print a run's trials as CSV, or write a trace of it."""
    from iobench.result import usable
    from iobench.rundir import Table, run_csv, write_file

    if series and samples:
        raise ConfigError("--series and --samples are two tables: ask for one")
    if trace is not None:
        if series or samples or output is not None:
            raise ConfigError("--trace writes a file of its own: give no other option")
        _export_trace(run_dir, trace)
        return
    table: Table = "samples" if samples else "trials"
    with usable(run_dir):
        data = run_csv(run_dir, "series" if series else table)
    if output is None:
        typer.echo(data, nl=False)
        return
    _require_folder(output)
    write_file(output, data)


def _export_trace(run_dir: Path, file: Path) -> None:
    """Write the trace of a run, and print what it has and what it lacks.

    Raises:
        ConfigError: there is no folder for the file.
    """
    from iobench.result import usable
    from iobench.rundir import run_trace, write_file

    _require_folder(file)
    with usable(run_dir):
        trace = run_trace(run_dir)
        data = trace.encoded(compress=file.suffix == ".gz")
    write_file(file, data)
    size = f"{counted(trace.processes, 'trial')}, {counted(len(trace.events), 'event')}"
    typer.echo(f"{escape(str(file))}: {size}; open it in https://ui.perfetto.dev")
    for line in trace.lacking:
        typer.echo(line, err=True)


def _require_folder(file: Path) -> None:
    if not file.parent.is_dir():
        raise ConfigError(f"no folder {str(file.parent)!r} to write {file.name} to")


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
    as_json: Json = False,
) -> None:
    """Identify the storage behind each path, with evidence.

    EBS, NVMe, NFS, FUSE and others.
    """
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
        bool,
        typer.Option("--force", help="Also with other machines, images, models or rules of rates."),
    ] = False,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Also write a page.")] = None,
    as_json: Json = False,
) -> None:
    """Compare saved runs: did a change help?

    Loops are paired by their group, everything else by its settings. The rates of the loops decide;
    without a loop in both runs, the rates of loaders and probes. Exit code 1 on a regression, 2
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
    run_dir: Folder,
    emit_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a config that dataprep shard runs."),
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The training loop. (default: that of the run's verdict)")
    ] = None,
    as_json: Json = False,
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
        typer.Option(min=2, max=100, help="Rounds of delays; more on a busy machine."),
    ] = 3,
    as_json: Json = False,
) -> None:
    """Check the benchmark against known links and delays: about five minutes.

    Rates behind a link of known bandwidth must be right. Injected delays at fetch, decode,
    augmentation and copy must be found on their rungs of the ladder and named by a finding. Else
    the exit code is 1.
    """
    from iobench.selftest import run

    ok = run(rounds, as_json=as_json, say=typer.echo, note=partial(typer.echo, err=True))
    raise typer.Exit(int(not ok))


@app.command("cost", hidden=True)
@app.command(cls=GroupedCommand)
def scale(
    run_dir: Folder,
    devices: Annotated[
        int | None, typer.Option(min=1, help="Devices that train together. (default: the run's)")
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Rate of an accelerator, such as H100 or H100-mlperf (docs/accelerators.md).",
        ),
    ] = None,
    device_rate: Annotated[
        float | None, typer.Option(help="Images/s of one device. (default: as measured)")
    ] = None,
    images_per_s: Annotated[float | None, typer.Option(help="Images/s of all devices.")] = None,
    devices_per_host: Annotated[
        int | None, typer.Option(min=1, help="Devices of a host. (default: GPUs of the run's)")
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs of the training.", rich_help_panel=_COST)
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(help="Samples of an epoch. (default: as the run read)", rich_help_panel=_COST),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="A file such as configs/prices.yaml. (default: that one)", rich_help_panel=_COST
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(help="Type of the machine in the file of prices.", rich_help_panel=_COST),
    ] = None,
    instance_usd_per_h: Annotated[
        float | None,
        typer.Option(
            *("--usd-per-h", "--instance-usd-per-h"),
            help="Price of an hour of the machine.",
            rich_help_panel=_COST,
        ),
    ] = None,
    disk_usd_per_gb_month: Annotated[
        float | None, typer.Option(help="Price of a GB of disk for a month.", rich_help_panel=_COST)
    ] = None,
    group: Annotated[
        str | None, typer.Option(help="The training loop. (default: that of the run's verdict)")
    ] = None,
    as_json: Json = False,
) -> None:
    """Calculate hosts and cost for N devices from a run."""
    from dataprep.config_file import read_config
    from iobench.analysis import sizing
    from iobench.analysis.analyse import analyse
    from iobench.analysis.epoch_cost import cost_lines, epoch_cost
    from iobench.config import ScaleSettings
    from iobench.consumers.accelerators import RATES
    from iobench.references import priced
    from iobench.result import usable
    from iobench.rundir import read

    if device is not None and device not in RATES:
        raise ConfigError(f"--device {device}: known are {', '.join(RATES)}")
    costs = _given(
        group=group,
        epochs=epochs,
        samples=samples,
        instance=instance,
        instance_usd_per_h=instance_usd_per_h,
        disk_usd_per_gb_month=disk_usd_per_gb_month,
    )
    with usable(run_dir):
        result, asked = priced(read(run_dir), costs, prices)
        found = analyse(result, group)
        told = _given(
            devices=devices or (found.loop.devices if found.loop else 1),
            images_per_s=images_per_s,
            images_per_s_per_device=device_rate,
            devices_per_host=devices_per_host,
        )
        read_config(ScaleSettings, None, told)  # refuses what does not go together
        hosts = sizing.scale(result, found.capacities, found.loop, {**told, "device": device})
        costing = epoch_cost(result, found.loop, asked)
        fed = sizing.feeds(found.supplies, found.loop, found.advice, device_rate)
    if as_json:
        stored = {"scale": hosts.as_dict(), "cost": costing.as_dict()}
        typer.echo(json.dumps({**stored, "feeds": fed.as_dict() if fed else None}))
    else:
        feeds = [sizing.feeds_line(fed)] if fed is not None else []
        for line in (*sizing.scale_lines(hosts), *feeds, *cost_lines(costing)):
            typer.echo(line)
    if hosts.unknown and costing.unknown:
        raise typer.Exit(2)  # nothing could be told


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def main() -> None:
    """Run a command."""
    start(app)


if __name__ == "__main__":
    main()
