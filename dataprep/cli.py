"""Parse, call, exit code; nothing else."""

from __future__ import annotations

from typing import ClassVar

try:
    from dataprep.command_line import Commands, application, start
    from dataprep.commands.jobs import finalize, plan, shard
    from dataprep.commands.looking import inspect, verify
    from dataprep.commands.starting import init, sample, schema
except KeyboardInterrupt:  # nothing has begun that could be told of
    raise SystemExit(130) from None


class DataprepCommands(Commands):
    """dataprep's commands."""

    program = "dataprep"
    interrupted = "interrupted: what is stored is kept, the same command resumes"
    interruptions: ClassVar = {
        "plan": "interrupted: nothing was written",
        "verify": "interrupted: not everything was checked, nothing was changed",
        "inspect": "interrupted: not everything was looked at, nothing was changed",
        "sample": "interrupted: remove what was drawn, and run it again",
        "init": "interrupted: remove what was copied, and run it again",
    }


app = application(
    DataprepCommands,
    "Image collections into resized, packed and verified TFRecord and RecordIO shards.",
)
for command in (plan, shard, finalize, verify, inspect, sample, init, schema):
    app.command()(command)


def main() -> None:
    """Run a command."""
    start(app, DataprepCommands)


if __name__ == "__main__":
    main()
