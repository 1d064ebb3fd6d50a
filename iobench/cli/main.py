"""The program ``iobench`` with all its commands."""

from __future__ import annotations

from typing import ClassVar

from dataprep.cli.program import Commands, GroupedCommand, application, start
from iobench.cli.commands.advise import advise
from iobench.cli.commands.compare import compare
from iobench.cli.commands.export import export, report
from iobench.cli.commands.run import ladder, run
from iobench.cli.commands.scale import scale
from iobench.cli.commands.schema import schema
from iobench.cli.commands.selftest import selftest
from iobench.cli.commands.targets import targets


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
for command in (run, ladder, report, export, schema, targets, compare, advise, selftest, scale):
    app.command(cls=GroupedCommand)(command)
app.command("cost", hidden=True)(scale)  # the former name of ``scale``


def main() -> None:
    """Run the command in ``sys.argv``."""
    start(app)


if __name__ == "__main__":
    main()
