"""The program ``dataprep`` with all its commands."""

from __future__ import annotations

from typing import ClassVar

from dataprep.cli.batch import batch
from dataprep.cli.finalize import finalize
from dataprep.cli.inspect import inspect
from dataprep.cli.plan import plan
from dataprep.cli.program import Commands, GroupedCommand, application, start
from dataprep.cli.shard import shard
from dataprep.cli.stage import stage
from dataprep.cli.start import init, sample, schema
from dataprep.cli.verify import verify


class DataprepCommands(Commands):
    """The commands of dataprep."""

    advice_when_interrupted: ClassVar = dict.fromkeys(
        ("shard", "stage"), "; run the same command again to resume"
    )


app = application(
    "dataprep",
    "Convert image collections to TFRecord, RecordIO and WebDataset shards.",
    DataprepCommands,
)
for command in (plan, shard, finalize, stage, verify, inspect, sample, init, schema):
    app.command(cls=GroupedCommand)(command)
app.add_typer(batch)


def main() -> None:
    """Run the command in ``sys.argv``."""
    start(app)


if __name__ == "__main__":
    main()
