"""``sample`` and ``init``: something to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer


def sample(
    dest: Annotated[Path, typer.Argument(help="A new or empty folder.")],
    images: Annotated[int, typer.Option(help="How many.")] = 200,
    classes: Annotated[int, typer.Option(help="In how many class folders.")] = 10,
    seed: Annotated[int, typer.Option(help="The same seed draws the same files.")] = 0,
    defects: Annotated[
        bool, typer.Option("--defects", help="Add one of each quirk and several broken files.")
    ] = False,
    layout: Annotated[
        Literal["imagefolder", "ilsvrc"],
        typer.Option(help="Class folders, or ILSVRC2012's tars and devkit as downloaded."),
    ] = "imagefolder",
) -> None:
    """Draw an ImageNet-like tree of photographs that never were."""
    from dataprep.names import escape
    from dataprep.sample import draw_ilsvrc, draw_tree

    draw = draw_ilsvrc if layout == "ilsvrc" else draw_tree
    tree = draw(dest, images=images, classes=classes, seed=seed, defects=defects)
    typer.echo(
        f"{tree.images:,} images in {tree.classes:,} classes, {tree.bytes / 1e6:,.1f} MB, "
        f"in {tree.root}"
    )
    for name, defect in tree.defects.items():
        typer.echo(f"  {escape(name)}: {defect.what} ({defect.expected})")


def init(
    dest: Annotated[Path, typer.Argument(help="Where the folder 'configs' goes.")] = Path(),
) -> None:
    """Copy the example configs here."""
    from dataprep.examples import copy_configs

    for path in copy_configs(dest):
        typer.echo(str(path))


def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    from dataprep.config import ShardConfig
    from dataprep.config_schema import editor_schema

    typer.echo(editor_schema(ShardConfig, "A sharding config of dataprep"), nl=False)
