"""``iobench run`` and ``iobench ladder``: measure, and write a report."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from dataprep.errors import ConfigError
from dataprep.name_encoding import escape
from iobench.cli.commands.options import Json

if TYPE_CHECKING:
    from iobench.config.benchmark import BenchConfig
    from iobench.runner.forecast import Forecast
    from iobench.runner.hosts.settings import HostSettings

_DRY_RUN_PANEL = "With --dry-run"
_MORE_PANEL = "More"
_HOSTS_PANEL = "Several hosts at the same time"

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
        help="Number of hosts. (default: from Slurm, torchrun, MPI, AWS Batch or Kubernetes)",
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
        "(default: from Slurm, torchrun, MPI, AWS Batch or Kubernetes)",
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
    """The options that ``run`` and ``ladder`` have in common.

    Attributes:
        config: the loaded config.
        output: the folder of the run, or None for a new one below ``reports``.
        resume: whether to continue the run in ``output``.
        like: the folder of a saved run from which the time is estimated.
        as_json: whether to print JSON instead of text.
        verbose: whether a dry run prints a line for each trial.
        yes: whether requests to a store may cost more than the limit.
        meeting: the settings of a run on several hosts; None for a single host.
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
        NotApproved: requests may cost more than the limit, and this was not approved.
    """
    from contextlib import ExitStack

    from iobench.runner.forecast import require_approval
    from iobench.runner.hosts.joint_run import leading
    from iobench.runner.progress import choose
    from iobench.runner.run import run as run_trials

    forecast = request.forecast()
    ask = typer.confirm if _is_on_a_terminal() else None
    require_approval(forecast, request.config.cost_limit_usd, yes=request.yes, ask=ask)
    folder, meeting = request.folder, request.meeting
    progress = choose()
    with ExitStack() as stack:
        leader = None
        if meeting is not None:
            leader = stack.enter_context(leading(meeting, request.config, progress))
        finished = run_trials(
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
    """Whether a person can be asked, and can answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _print_result(request: _Request, summary: Mapping[str, Any], report: Path) -> None:
    """Print the verdict, the ladders if requested, and the path of the report."""
    from iobench.analysis.gain_words import result_lines
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
