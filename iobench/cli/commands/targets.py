"""``iobench targets``: the kind of storage behind each path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from dataprep.name_encoding import escape
from iobench.cli.commands.options import Json


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
