"""What the command lines of both packages share: one-line errors, exit codes, signals."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, NoReturn

import typer
from typer.core import TyperGroup

from dataprep._version import __version__
from dataprep.credentials import without_credentials
from dataprep.errors import ConfigError, DataprepError
from dataprep.standard_streams import settle

_FULL = (errno.ENOSPC, errno.EDQUOT)
_TOO_MANY = (errno.EMFILE, errno.ENFILE)
_NO_NAME = (errno.ENAMETOOLONG, errno.ELOOP)
_NO_MEMORY = "out of memory: give it more (ulimit -v, the container's limit), or take fewer workers"
_NO_THREAD = "can't start new thread"  # threading's own words
# glibc's words, of a library that could not be loaded for lack of it.
_UNMAPPED = ("failed to map segment", "cannot allocate memory")
_OBJECTS_OF_IMPORTS = 100_000


class Commands(TyperGroup):
    """Turns errors into one line and an exit code; subclasses say which program they are."""

    program: ClassVar[str]
    interrupted: ClassVar[str]
    interruptions: ClassVar[Mapping[str, str]] = {}
    """What is said in place of ``interrupted``, by command."""

    chosen: ClassVar[str] = ""
    """The command that runs."""

    @classmethod
    def farewell(cls) -> str:
        """The line with which an interrupted command ends."""
        return f"{cls.program}: {cls.interruptions.get(cls.chosen, cls.interrupted)}"

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Note which command it is."""
        found = super().resolve_command(ctx, args)
        type(self).chosen = found[0] or ""
        return found

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        """Run the chosen command."""
        try:
            _require_folder()
            return super().invoke(ctx)
        except DataprepError as error:
            _show_traceback(ctx)
            typer.echo(f"{self.program}: {told(str(error))}", err=True)
            raise typer.Exit(error.exit_code) from None
        except (OSError, MemoryError, ImportError, RuntimeError) as error:
            what = _lacking(error)
            if what is None:
                raise
            _show_traceback(ctx)
            typer.echo(f"{self.program}: {told(what)}", err=True)
            _drop_stdout()
            raise typer.Exit(2 if getattr(error, "errno", None) in _NO_NAME else 1) from None
        except KeyboardInterrupt:
            _on_signals(signal.SIG_IGN)
            typer.echo(self.farewell(), err=True)
            raise typer.Exit(130) from None


def _require_folder() -> None:
    """Raises ConfigError where the current folder was removed, which most libraries ask for."""
    try:
        Path.cwd()
    except OSError:
        raise ConfigError("the current folder is not there any more: cd to one that is") from None


def _lacking(error: Exception) -> str | None:
    """What the machine has too little of, and what to do; None for every other error."""
    if str(error) == _NO_THREAD or getattr(error, "errno", None) == errno.EAGAIN:
        return "no thread or process more can be started: raise the limits (ulimit -u, ulimit -v)"
    if isinstance(error, MemoryError):
        return _NO_MEMORY
    if isinstance(error, ImportError):
        return _NO_MEMORY if any(words in str(error).lower() for words in _UNMAPPED) else None
    if not isinstance(error, OSError):
        return None
    if error.errno == errno.ENOMEM:
        return _NO_MEMORY
    if error.errno in _TOO_MANY:
        return "too many open files: raise the limit (ulimit -n 4096), and run again"
    if error.errno in _FULL:
        place = f" to {error.filename}" if error.filename else ""
        return f"cannot write{place}: {error.strerror}"
    if error.errno in _NO_NAME:
        return f"{_short(error.filename)}: {error.strerror}"
    if "temporary directory" in str(error.strerror):  # tempfile's own words
        return "no folder for temporary files can be written to: set TMPDIR to one, or free space"
    return None


def _show_traceback(ctx: typer.Context) -> None:
    """Print that of the error in hand, where ``--debug`` asks for it; the exit code stays."""
    if ctx.params.get("debug"):
        typer.echo(without_credentials(traceback.format_exc()), err=True)


def application(commands: type[Commands], purpose: str) -> typer.Typer:
    """A program without commands yet: its help, ``--version`` and ``--debug``."""
    app = typer.Typer(
        name=commands.program,
        cls=commands,
        help=purpose,
        no_args_is_help=True,
        rich_markup_mode=None,
        add_completion=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_every_command)
    return app


def start(app: typer.Typer, commands: type[Commands]) -> None:
    """Run a command; ``--debug`` may stand anywhere.

    SIGTERM (spot instances, Slurm, Batch) and SIGHUP (a closed terminal) are taken as Ctrl-C is.
    """

    def interrupt(signum: int, frame: object) -> NoReturn:
        """The first signal ends the command in order, a second one at once."""
        _on_signals(end_at_once)
        raise KeyboardInterrupt

    def end_at_once(signum: int, frame: object) -> NoReturn:
        with contextlib.suppress(OSError):  # of a terminal that has gone
            os.write(2, f"{commands.farewell()}\n".encode())
        os._exit(130)

    try:
        settle()
        _on_signals(interrupt)
        _collect_after_imports()
        arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
        if len(arguments) < len(sys.argv) - 1:
            arguments.insert(0, "--debug")
        app(arguments)
    except SystemExit as ending:
        _end(ending.code)
        raise
    except KeyboardInterrupt:  # before a command was chosen
        end_at_once(signal.SIGINT, None)


def _collect_after_imports() -> None:
    """Look for garbage once, among what imports made, and from then on as usual, not there."""
    usual = gc.get_threshold()

    def collected(phase: str, info: object) -> None:
        if phase == "stop":
            gc.callbacks.remove(collected)
            gc.freeze()
            gc.set_threshold(*usual)

    gc.callbacks.append(collected)
    gc.set_threshold(_OBJECTS_OF_IMPORTS)


def _end(code: object) -> None:
    """End the process at once: to take apart all that it imported takes up to half a second.

    Where a thread still runs, or what was printed cannot be written, the interpreter has to do it.
    """
    others = {*threading.enumerate()} - {threading.main_thread()}
    if not isinstance(code, int | None) or not all(thread.daemon for thread in others):
        return

    def end_now(signum: int, frame: object) -> NoReturn:
        """What was asked for is done, or has failed: an interrupt changes nothing of that."""
        os._exit(code or 0)

    _on_signals(end_now)
    atexit._run_exitfuncs()
    try:
        for stream in filter(None, (sys.stdout, sys.stderr)):
            stream.flush()
    except (OSError, ValueError):
        return
    os._exit(code or 0)


def settings(pairs: list[str], example: str) -> dict[str, Any]:
    """``KEY=VALUE`` pairs of ``--set``, values as YAML.

    Raises:
        ConfigError: no such pair, or no YAML.
    """
    from dataprep.yaml_text import parse_yaml

    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ConfigError(f"--set {pair!r}: write KEY=VALUE, as in --set {example}")
        try:
            found[key] = parse_yaml(value)
        except ValueError:
            raise ConfigError(f"--set {pair!r}: the value is not valid YAML") from None
    return found


def one_line(message: str) -> str:
    """The names in it may hold line feeds, and bytes that mean something to a terminal."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in message)


def told(message: str) -> str:
    """``one_line`` of it, and no credential of an address that stands in it."""
    return one_line(without_credentials(message))


def _short(name: object, characters: int = 80) -> str:
    shown = repr(name)
    return shown if len(shown) <= characters else f"{shown[:characters]}..."


def _version(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        shown = f"{ctx.command.name} {__version__}"
        if ctx.command.name == "dataprep":
            from dataprep.versions import resizer

            shown += f" (resizer: {resizer()})"
        typer.echo(shown)
        raise typer.Exit


def _every_command(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
) -> None:
    """What may stand before a command."""


def _drop_stdout() -> None:
    """Have the interpreter flush into nothing what could not be written, when it ends."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _on_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup and & want it
            signal.signal(number, handler)
