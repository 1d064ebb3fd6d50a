"""What the command lines of both packages share: one-line errors, exit codes, signals, help.

Exit codes: 0 done; 1 the command ran and its result is not acceptable; 2 the request was wrong and
nothing was written; 130 interrupted.
"""

from __future__ import annotations

import contextlib
import errno
import gc
import os
import signal
import sys
import traceback
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from dataprep._version import __version__
from dataprep.credentials import without_credentials
from dataprep.errors import INTERRUPTED, DataprepError

_WRONG_PLACE = (
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR, errno.EISDIR),
    *(errno.ENAMETOOLONG, errno.ELOOP),
)


class Commands(TyperGroup):
    """The commands of a program; an error becomes one line on stderr and an exit code."""

    interrupted: ClassVar[Mapping[str, str]] = {}
    """How to continue a command that was interrupted, by its name."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except DataprepError as error:
            self._fail(ctx, str(error), error.exit_code)
        except MemoryError:
            self._fail(ctx, "out of memory: use fewer workers or raise the memory limit", 1)
        except OSError as error:
            if error.errno == errno.EPIPE:  # the reader of stdout has ended; typer exits quietly
                raise
            # What could not be written goes nowhere when the interpreter flushes it at its exit.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            place = f": {str(error.filename)[:200]}" if error.filename else ""
            message = f"{error.strerror or error}{place}"
            usual = 2 if error.errno in _WRONG_PLACE else 1
            self._fail(ctx, message, getattr(error, "exit_code", usual))
        except KeyboardInterrupt:
            _handle_signals(signal.SIG_IGN)
            advice = self.interrupted.get(ctx.invoked_subcommand, "")
            typer.echo(f"{self.name}: interrupted{advice}", err=True)
            raise typer.Exit(INTERRUPTED) from None

    def _fail(self, ctx: Any, message: str, code: int) -> NoReturn:
        if ctx.params.get("debug"):
            typer.echo(without_credentials(traceback.format_exc()), err=True)
        first, *more = message.split("\n")
        typer.echo(printable(f"{self.name}: {first}"), err=True)
        for line in more:
            typer.echo(printable(f"  {line}"), err=True)
        raise typer.Exit(code)


class GroupedCommand(TyperCommand):
    """A command whose help groups its options by ``rich_help_panel``, as plain text."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, in the order in which they first appear."""
        groups: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            usual = f"{parameter.param_type_name.title()}s"  # Arguments, Options
            title = getattr(parameter, "rich_help_panel", None) or usual
            if record := parameter.get_help_record(ctx):
                groups.setdefault(title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def application(name: str, purpose: str, commands: type[Commands]) -> typer.Typer:
    """A program without commands yet, with its help, ``--version`` and ``--debug``."""
    app = typer.Typer(
        name=name,
        cls=commands,
        help=purpose,
        no_args_is_help=True,
        rich_markup_mode=None,  # importing rich takes longer than the rest of --help
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_before_command)
    return app


def start(app: typer.Typer) -> None:
    """Run the command in ``sys.argv``; ``--debug`` may stand anywhere.

    SIGTERM (spot instances, Slurm, Batch) and SIGHUP (a closed terminal) interrupt as Ctrl-C does.
    A second signal ends the process at once.
    """

    def interrupt(signum: int, frame: object) -> NoReturn:
        _handle_signals(lambda signum, frame: os._exit(INTERRUPTED))
        raise KeyboardInterrupt

    _handle_signals(interrupt)
    gc.set_threshold(50_000)  # imports make many objects, none of which is garbage
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    if len(arguments) < len(sys.argv) - 1:
        arguments.insert(0, "--debug")
    try:
        app(arguments)
    finally:
        gc.freeze()  # or the interpreter looks through all modules once more before it ends


def printable(text: str) -> str:
    """One line without control characters and credentials, which names and addresses may have."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in without_credentials(text))


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and & set it
            signal.signal(number, handler)


def _show_version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        from dataprep.versions import installed

        typer.echo(f"{ctx.command.name} {__version__}\n{installed()}")
        raise typer.Exit


def _before_command(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """Take the options of every command."""
