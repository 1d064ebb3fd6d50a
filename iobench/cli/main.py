"""The commands of ``iobench``.

Each command reads its options, makes one call, and prints the answer as text or as JSON.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import typer

from dataprep.cli.program import Commands, GroupedCommand, application, start
from dataprep.counted import counted
from dataprep.errors import ConfigError
from dataprep.names import escape

if TYPE_CHECKING:
    from iobench.config.benchmark import BenchConfig
    from iobench.runner.forecast import Forecast
    from iobench.runner.hosts.settings import HostSettings

_DRY_RUN_PANEL = "With --dry-run"
_MORE_PANEL = "More"
_HOSTS_PANEL = "Several hosts at the same time"
_COST_PANEL = "Cost of a training"

Config: TypeAlias = Annotated[
    Path, typer.Argument(help="A config: a YAML file. dataprep init copies examples.")
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option(help="The folder of the run. (default: reports/NAME-TIME)")
]
Set: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Set any key of the config: --set data.images=5000, --set training.0.steps=50.",
    ),
]
Resume: TypeAlias = Annotated[bool, typer.Option("--resume", help="Continue the run in --output.")]
DryRun: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--dry-run", help="Print the trials, their time and their cost without measuring."
    ),
]
Like: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        help="Estimate the time from the saved run in this folder.", rich_help_panel=_DRY_RUN_PANEL
    ),
]
Verbose: TypeAlias = Annotated[
    bool,
    typer.Option("--verbose", help="Print a line for each trial.", rich_help_panel=_DRY_RUN_PANEL),
]
Yes: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--yes",
        help="Start even if requests to a store may cost more than cost_limit_usd.",
        rich_help_panel=_MORE_PANEL,
    ),
]
PrintConfig: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--print-config",
        help="Print the config with all defaults as YAML.",
        rich_help_panel=_MORE_PANEL,
    ),
]
Hosts: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--hosts",
        min=1,
        metavar="N",
        help="Number of hosts. (default: from Slurm, torchrun or MPI)",
        rich_help_panel=_HOSTS_PANEL,
    ),
]
Host: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--host",
        min=0,
        metavar="I",
        help="Number of this host, from 0. Host 0 writes the report. "
        "(default: from Slurm, torchrun or MPI)",
        rich_help_panel=_HOSTS_PANEL,
    ),
]
Rendezvous: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--rendezvous",
        metavar="URI",
        help="Where the hosts find each other: a folder that they share, or s3://bucket/prefix.",
        rich_help_panel=_HOSTS_PANEL,
    ),
]
RendezvousSet: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--rendezvous-set",
        metavar="KEY=VALUE",
        help="An option of the store of the rendezvous: --rendezvous-set endpoint_url=URL.",
        rich_help_panel=_HOSTS_PANEL,
    ),
]
HostTimeout: TypeAlias = Annotated[
    float | None,
    typer.Option(
        "--host-timeout",
        min=1,
        metavar="SECONDS",
        help="Maximum wait for a host, at the start and before each trial. (default: "
        "trial_timeout_s)",
        rich_help_panel=_HOSTS_PANEL,
    ),
]
HostCounts: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--host-counts",
        metavar="N,N...",
        help="Also run each trial on these numbers of hosts: 1,2,4.",
        rich_help_panel=_HOSTS_PANEL,
    ),
]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout.")]
Folder: TypeAlias = Annotated[Path, typer.Argument(help="The folder of a run.")]


class IobenchCommands(Commands):
    """The commands of iobench."""

    advice_when_interrupted: ClassVar = dict.fromkeys(
        ("run", "ladder"), ": results so far are saved, continue with --resume"
    )


app = application(
    "iobench",
    "Measure storage, loaders and training loops, and find the bottleneck.",
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
    rendezvous: Rendezvous = None,
    rendezvous_set: RendezvousSet = None,
    host_timeout: HostTimeout = None,
    host_counts: HostCounts = None,
) -> None:
    """Run the trials of a config and write a report.

    With --rendezvous several hosts run each trial at the same time. Start the same command on each
    host (docs/many-hosts.md).

    Keys that are often set (--set KEY=VALUE): data.source or data.shards, repeats,
    training.0.consumer, .model, .batch_size, .loader, .workers, .inputs, and loaders.0.workers.
    docs/benchmark-config.md has all keys.
    """
    from dataprep.config.files import parse_settings
    from iobench.config.benchmark import load
    from iobench.runner.hosts.settings import host_settings

    loaded = load(config, parse_settings(set_ or []))
    timeout_s = host_timeout or loaded.trial_timeout_s
    meeting = host_settings(host, hosts, rendezvous, rendezvous_set or [], timeout_s, host_counts)
    _carry_out(
        _Request(
            config=loaded,
            output=output,
            resume=resume,
            like=like,
            as_json=as_json,
            verbose=verbose,
            yes=yes,
            meeting=meeting,
        ),
        print_config=print_config,
        dry_run=dry_run,
    )


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
    """Measure the cost of each part of the input in a training step.

    Each training loop of the config runs several times, each time with one more real part of the
    input. '?' marks a cost that cannot be distinguished from zero.
    """
    from dataprep.config.files import parse_settings
    from iobench.config.benchmark import load
    from iobench.config.plan import ladder_config

    loaded = ladder_config(load(config, parse_settings(set_ or [])))
    _carry_out(
        _Request(
            config=loaded,
            output=output,
            resume=resume,
            like=like,
            as_json=as_json,
            verbose=verbose,
            yes=yes,
            prints_ladders=True,
        ),
        print_config=print_config,
        dry_run=dry_run,
    )


@dataclass(frozen=True, slots=True)
class _Request:
    """The options that ``run`` and ``ladder`` share.

    Args:
        config: the loaded config.
        output: the folder of the run, or None for a new one below ``reports``.
        resume: whether to continue the run in ``output``.
        like: the folder of a saved run from which the time is estimated.
        as_json: whether to print JSON instead of text.
        verbose: whether a dry run prints a line for each trial.
        yes: whether requests to a store may cost more than the limit.
        meeting: how several hosts meet; None for a single host.
        prints_ladders: whether to print the ladders of training loops as tables.

    Raises:
        ConfigError: ``resume`` without ``output``.
    """

    config: BenchConfig
    output: Path | None
    resume: bool
    like: Path | None
    as_json: bool
    verbose: bool
    yes: bool
    meeting: HostSettings | None = None
    prints_ladders: bool = False

    def __post_init__(self) -> None:
        if self.resume and self.output is None:
            raise ConfigError("--resume needs --output: name the folder of the run to continue")

    @property
    def resumed_folder(self) -> Path | None:
        """The folder of the run to continue, if any."""
        return self.output if self.resume else None

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        from iobench.runner.run_folder import default_folder

        return self.output or default_folder(self.config.name)

    def forecast(self) -> Forecast:
        """Estimate the time and the cost of the trials, on all hosts."""
        from iobench.runner.forecast import forecast

        estimate = forecast(self.config, resumed=self.resumed_folder, like=self.like)
        if self.meeting is not None:
            return estimate.on_hosts(self.meeting.hosts, self.meeting.counts)
        return estimate


def _carry_out(request: _Request, *, print_config: bool, dry_run: bool) -> None:
    """Print the config, print a forecast, or measure.

    Raises:
        ConfigError: options of a dry run without ``--dry-run``, or a config that cannot be run.
    """
    if print_config:
        from iobench.config.benchmark import dump

        typer.echo(dump(request.config), nl=False)
        return
    if dry_run:
        forecast = request.forecast()
        if request.as_json:
            typer.echo(json.dumps(forecast.content()))
        else:
            typer.echo(forecast.text(verbose=request.verbose))
        return
    if request.like is not None or request.verbose:
        raise ConfigError("--like and --verbose go with --dry-run: add it, or leave them out")
    if request.meeting is not None and request.meeting.host > 0:
        _follow(request, request.meeting)
    else:
        _measure(request)


def _measure(request: _Request) -> None:
    """Run the trials and print the result.

    A person at a terminal is asked first if requests to a store may cost more than the limit.

    Raises:
        ConfigError: the config cannot be run.
        NotApproved: requests may cost more than the limit, and nobody agreed.
    """
    from contextlib import ExitStack

    from iobench.runner import run as running
    from iobench.runner.forecast import require_approval
    from iobench.runner.hosts.joint_run import leading
    from iobench.runner.progress import choose

    forecast = request.forecast()
    ask = typer.confirm if _is_on_a_terminal() else None
    require_approval(forecast, request.config.cost_limit_usd, yes=request.yes, ask=ask)
    folder, meeting = request.folder, request.meeting
    progress = choose()
    with ExitStack() as stack:
        leader = None
        if meeting is not None:
            leader = stack.enter_context(leading(meeting, request.config, progress))
        finished = running.run(
            request.config,
            folder,
            progress,
            resume=request.resume,
            forecast=forecast.totals(),
            leader=leader,
            host_counts=meeting.counts if meeting is not None else (),
        )
        if leader is not None:
            leader.exit_code = finished.exit_code
    _print_result(request, finished.result.summary, finished.folder / "report.html")
    typer.echo(finished.counts, err=True)
    raise typer.Exit(finished.exit_code)


def _is_on_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _print_result(request: _Request, summary: Mapping[str, Any], report: Path) -> None:
    """Print the verdict, the ladders if requested, and the path of the report."""
    from iobench.analysis.analyse import result_lines
    from iobench.results.wording import ladder_table

    report_path = escape(str(report))
    if request.as_json:
        content = {"verdict": summary.get("verdict"), "ladder": summary.get("ladder")}
        typer.echo(json.dumps({**content, "report": report_path}))
        return
    if request.prints_ladders:
        typer.echo("\n\n".join(ladder_table(entry) for entry in summary["ladder"]))
    for line in result_lines(summary):
        typer.echo(escape(line))
    typer.echo(report_path)


def _follow(request: _Request, meeting: HostSettings) -> None:
    """Run the trials together with host 0, which writes the report."""
    from iobench.runner import progress
    from iobench.runner.hosts.joint_run import follow

    folder = request.folder / f"host-{meeting.host}"
    exit_code = follow(meeting, request.config, folder, progress.choose())
    typer.echo(
        f"host {meeting.host} of {meeting.hosts} has finished: host 0 writes the report", err=True
    )
    raise typer.Exit(exit_code)


@app.command()
def report(run_dir: Folder) -> None:
    """Draw the report again from a saved result."""
    from iobench.results.result import usable
    from iobench.runner.run_folder import redraw

    with usable(run_dir):
        page = redraw(run_dir)
    typer.echo(escape(str(page)))


@app.command()
def export(
    run_dir: Folder,
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
    from iobench.results.result import usable
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
    with usable(run_dir):
        data = run_csv(run_dir, table)
    if output is None:
        typer.echo(data, nl=False)
        return
    _require_folder(output)
    write_file(output, data)


def _export_trace(run_dir: Path, file: Path) -> None:
    """Write the trace of a run, and print its size and what is missing in it.

    Raises:
        ConfigError: the folder of the file does not exist.
    """
    from iobench.results.result import usable
    from iobench.runner.run_folder import run_trace, write_file

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
        raise ConfigError(
            f"cannot write {str(file)!r}: there is no folder {str(file.parent)!r}, create it first"
        )


@app.command()
def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    from dataprep.config.files import editor_schema
    from iobench.config.benchmark import BenchConfig

    typer.echo(editor_schema(BenchConfig, "A benchmark config of iobench"), nl=False)


@app.command()
def targets(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Files or folders. (default: all mounted file systems that hold data)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Identify the storage behind each path, such as EBS, NVMe, NFS or FUSE, with evidence."""
    from iobench.machine.mounts import data_mounts, mounts
    from iobench.machine.storage import describe_target, target_lines

    mount_table = mounts()
    targets_by_path = {}
    for path in paths or data_mounts(mount_table):
        targets_by_path[path] = describe_target(path, mount_table)
    if as_json:
        content = {}
        for path, target in targets_by_path.items():
            content[escape(str(path))] = {"is_there": path.exists(), **target}
        typer.echo(json.dumps({"targets": content}))
        return
    for path, target in targets_by_path.items():
        for line in target_lines(escape(str(path)), target, exists=path.exists()):
            typer.echo(line)


@app.command()
def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN_DIR",
            help="The base run, then newer runs: folders, or their result.json. "
            "With --against, only the newer runs.",
        ),
    ],
    threshold: Annotated[
        str,
        typer.Option(
            metavar="SHARE", help="Smallest change of a rate that counts as better or worse."
        ),
    ] = "5%",
    against: Annotated[
        Path | None,
        typer.Option(metavar="BASELINE", help="The base run: a folder, or a saved result.json."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Compare even if images, models, machines or the rules of counting differ.",
        ),
    ] = False,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the comparison as an HTML page.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare saved runs: did a change help?

    Training loops are paired by their group, other trials by their settings. The rates of the loops
    decide. If no loop is in both runs, the rates of loaders and probes decide. The exit code is 1
    for a regression and 2 if the runs cannot be compared. With several newer runs, the newest one
    decides.
    """
    from iobench.cli.compare import compare_saved, page_name, threshold_share
    from iobench.results.result import usable

    if html is not None:
        page_name(html)
    share = threshold_share(threshold)
    folders = [*runs] if against is None else [against, *runs]
    with usable(*folders):
        compared = compare_saved(runs, against, share, force=force)
        if html is not None:
            compared.write_page(html)
        answer = compared.json if as_json else compared.text
    typer.echo(answer)
    raise typer.Exit(compared.exit_code)


@app.command()
def advise(
    run_dir: Folder,
    emit_config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a config for dataprep shard."),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Name of the training loop. (default: the loop of the verdict)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Recommend changes, with the predicted gain of each.

    --emit-config writes a config for dataprep shard and prints how to measure again.
    """
    from iobench.cli.advise import advise_saved
    from iobench.results.result import usable

    with usable(run_dir):
        advice = advise_saved(run_dir, group)
        answer = advice.json if as_json else advice.text
        next_commands = ""
        if emit_config is not None:
            next_commands = advice.write_config(emit_config)
    typer.echo(answer)
    if next_commands:
        typer.echo(next_commands, err=as_json)


@app.command()
def selftest(
    rounds: Annotated[
        int,
        typer.Option(
            min=2, max=100, help="Number of rounds of delays. Use more on a busy machine."
        ),
    ] = 3,
    as_json: Json = False,
) -> None:
    """Check that iobench measures known rates and delays correctly; about five minutes.

    Rates behind a link of known bandwidth must be right. Delays that are injected into fetch,
    decode, augmentation and copy must be found on their rungs of the ladder and named by a finding.
    Otherwise the exit code is 1.
    """
    from iobench.selftest import run

    ok = run(rounds, as_json=as_json, say=typer.echo, note=partial(typer.echo, err=True))
    raise typer.Exit(int(not ok))


@app.command("cost", hidden=True)
@app.command(cls=GroupedCommand)
def scale(
    run_dir: Folder,
    devices: Annotated[
        int | None,
        typer.Option(min=1, help="Number of devices that train together. (default: as in the run)"),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Use the published rate of an accelerator, such as H100 or H100-mlperf "
            "(docs/accelerators.md).",
        ),
    ] = None,
    device_rate: Annotated[
        float | None, typer.Option(help="Images/s that one device consumes. (default: as measured)")
    ] = None,
    images_per_s: Annotated[
        float | None, typer.Option(help="Images/s that all devices consume together.")
    ] = None,
    devices_per_host: Annotated[
        int | None,
        typer.Option(
            min=1, help="Devices in each host. (default: the number of GPUs in the run's host)"
        ),
    ] = None,
    epochs: Annotated[
        int | None,
        typer.Option(help="Number of epochs of the training.", rich_help_panel=_COST_PANEL),
    ] = None,
    samples: Annotated[
        int | None,
        typer.Option(
            help="Samples in an epoch. (default: as in the run)", rich_help_panel=_COST_PANEL
        ),
    ] = None,
    prices: Annotated[
        Path | None,
        typer.Option(
            help="A YAML file of prices. (default: configs/prices.yaml)",
            rich_help_panel=_COST_PANEL,
        ),
    ] = None,
    instance: Annotated[
        str | None,
        typer.Option(
            help="Name of the host's instance type in the file of prices.",
            rich_help_panel=_COST_PANEL,
        ),
    ] = None,
    instance_usd_per_h: Annotated[
        float | None,
        typer.Option(
            *("--usd-per-h", "--instance-usd-per-h"),
            help="Price of a host for one hour.",
            rich_help_panel=_COST_PANEL,
        ),
    ] = None,
    disk_usd_per_gb_month: Annotated[
        float | None,
        typer.Option(help="Price of one GB of disk for one month.", rich_help_panel=_COST_PANEL),
    ] = None,
    group: Annotated[
        str | None,
        typer.Option(help="Name of the training loop. (default: the loop of the verdict)"),
    ] = None,
    as_json: Json = False,
) -> None:
    """Calculate from a run how many hosts N devices need, and what the training costs."""
    from dataprep.config.files import read_config
    from iobench.analysis import sizing
    from iobench.analysis.analyse import analyse
    from iobench.analysis.epoch_cost import cost_lines, epoch_cost
    from iobench.config.benchmark import ScaleSettings
    from iobench.config.references import priced
    from iobench.consumers.accelerators import RATES
    from iobench.results.result import usable
    from iobench.runner.run_folder import read

    if device is not None and device not in RATES:
        raise ConfigError(f"--device {device}: known are {', '.join(RATES)}")
    cost_options = _without_none(
        group=group,
        epochs=epochs,
        samples=samples,
        instance=instance,
        instance_usd_per_h=instance_usd_per_h,
        disk_usd_per_gb_month=disk_usd_per_gb_month,
    )
    with usable(run_dir):
        result, cost_settings = priced(read(run_dir), cost_options, prices)
        analysis = analyse(result, group)
        loop = analysis.loop
        scale_options = _without_none(
            devices=devices or (loop.devices if loop is not None else 1),
            images_per_s=images_per_s,
            images_per_s_per_device=device_rate,
            devices_per_host=devices_per_host,
        )
        read_config(ScaleSettings, None, scale_options)  # refuses options that exclude each other
        scaled = sizing.scale(
            result, analysis.capacities, loop, {**scale_options, "device": device}
        )
        costs = epoch_cost(result, loop, cost_settings)
        feeds = sizing.feeds(analysis.supplies, loop, analysis.advice, device_rate)
    if as_json:
        content = {"scale": scaled.as_dict(), "cost": costs.as_dict()}
        typer.echo(json.dumps({**content, "feeds": feeds.as_dict() if feeds else None}))
    else:
        lines = [*sizing.scale_lines(scaled)]
        if feeds is not None:
            lines.append(sizing.feeds_line(feeds))
        lines += cost_lines(costs)
        for line in lines:
            typer.echo(line)
    if scaled.unknown and costs.unknown:
        raise typer.Exit(2)  # neither the hosts nor the cost could be calculated


def _without_none(**options: Any) -> dict[str, Any]:
    """The options that were given on the command line."""
    return {name: value for name, value in options.items() if value is not None}


def main() -> None:
    """Run the command that is named in the arguments of the process."""
    start(app)


if __name__ == "__main__":
    main()
