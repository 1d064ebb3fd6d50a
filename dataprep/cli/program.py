"""The basis of both programs: errors in one line, exit codes, signals and help.

Exit codes:

- 0: the command has done its work.
- 1: the command ran, but its result is not acceptable.
- 2: the request was wrong, and nothing was written.
- 130: the command was interrupted.
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

_WRONG_PATH_ERRORS = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
)


class Commands(TyperGroup):
    """The commands of a program. An error becomes one line on stderr and an exit code."""

    advice_when_interrupted: ClassVar[Mapping[str, str]] = {}
    """By the name of a command, the text that follows "interrupted" in the message."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except DataprepError as error:
            self._fail(ctx, str(error), error.exit_code)
        except MemoryError:
            self._fail(ctx, "out of memory: use fewer workers or raise the memory limit", 1)
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise  # The reader of stdout has ended. Typer then exits without a message.
            # At its exit the interpreter flushes stdout again. Discard the rest of the output.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            path = f": {str(error.filename)[:200]}" if error.filename else ""
            message = f"{error.strerror or error}{path}"
            default_code = 2 if error.errno in _WRONG_PATH_ERRORS else 1
            self._fail(ctx, message, getattr(error, "exit_code", default_code))
        except KeyboardInterrupt:
            _handle_signals(signal.SIG_IGN)
            advice = self.advice_when_interrupted.get(ctx.invoked_subcommand, "")
            typer.echo(f"{self.name}: interrupted{advice}", err=True)
            raise typer.Exit(INTERRUPTED) from None

    def _fail(self, ctx: Any, message: str, code: int) -> NoReturn:
        """Print an error, with a traceback for ``--debug``, and exit."""
        if ctx.params.get("debug"):
            typer.echo(without_credentials(traceback.format_exc()), err=True)
        first_line, *further_lines = message.split("\n")
        typer.echo(printable(f"{self.name}: {first_line}"), err=True)
        for line in further_lines:
            typer.echo(printable(f"  {line}"), err=True)
        raise typer.Exit(code)


class GroupedCommand(TyperCommand):
    """A command whose help is plain text, with options in groups (``rich_help_panel``)."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a section for each group, in the order of their first options."""
        groups: dict[str, list[Any]] = {}
        for parameter in self.get_params(ctx):
            default_title = f"{parameter.param_type_name.title()}s"  # Arguments or Options
            title = getattr(parameter, "rich_help_panel", None) or default_title
            if record := parameter.get_help_record(ctx):
                groups.setdefault(title, []).append(record)
        for title, records in groups.items():
            with formatter.section(title):
                formatter.write_dl(records)


def application(name: str, purpose: str, commands: type[Commands]) -> typer.Typer:
    """Create a program without commands, with its help, ``--version`` and ``--debug``.

    Args:
        name: the name of the program.
        purpose: one sentence for the help.
        commands: the class that runs its commands.
    """
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
    """Run the command in ``sys.argv``.

    The option ``--debug`` may be before or after the command. SIGTERM (from spot instances, Slurm
    and AWS Batch) and SIGHUP (from a closed terminal) interrupt the command like Ctrl-C. A second
    signal ends the process at once.
    """

    def interrupt(signum: int, frame: object) -> NoReturn:
        _handle_signals(lambda signum, frame: os._exit(INTERRUPTED))
        raise KeyboardInterrupt

    _handle_signals(interrupt)
    # Imports create many objects and no garbage. Search for garbage less often.
    gc.set_threshold(50_000)
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    if len(arguments) < len(sys.argv) - 1:
        arguments.insert(0, "--debug")
    try:
        app(arguments)
    finally:
        # Otherwise the interpreter would search all modules for garbage once more at its end.
        gc.freeze()


def printable(text: str) -> str:
    """Return a line without the control characters and credentials that names may contain."""
    characters = []
    for character in without_credentials(text):
        if character.isprintable():
            characters.append(character)
        else:
            characters.append(ascii(character)[1:-1])
    return "".join(characters)


def _handle_signals(handler: Any) -> None:
    """Set the handler of the signals that end a command."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Signals that nohup or the shell's & ignore stay ignored.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _show_version(ctx: typer.Context, is_requested: bool) -> None:
    """Print the versions of the program and of its libraries, and exit."""
    if is_requested:
        from dataprep.output.versions import installed_libraries

        typer.echo(f"{ctx.command.name} {__version__}\n{installed_libraries()}")
        raise typer.Exit


def _before_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Print the version of the program and of its libraries.",
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Take the options that are before every command."""
