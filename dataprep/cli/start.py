"""``dataprep sample``, ``init`` and ``schema``: test photos, example configs, and a schema."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated, Literal

import typer


def sample(
    dest: Annotated[Path, typer.Argument(metavar="DEST", help="A new or empty folder.")],
    images: Annotated[int, typer.Option(metavar="N", help="Number of photos.")] = 200,
    classes: Annotated[int, typer.Option(metavar="N", help="Number of class folders.")] = 10,
    seed: Annotated[
        int,
        typer.Option(metavar="N", help="Seed of the photos. The same seed gives the same files."),
    ] = 0,
    defects: Annotated[
        bool, typer.Option("--defects", help="Add one photo with each quirk, and damaged files.")
    ] = False,
    layout: Annotated[
        Literal["imagefolder", "ilsvrc"],
        typer.Option(help="Class folders, or the tars and the devkit of ILSVRC2012."),
    ] = "imagefolder",
) -> None:
    """Generate test photos."""
    from dataprep.cli.output import show
    from dataprep.drawn import draw_ilsvrc, draw_tree
    from dataprep.name_encoding import escape

    draw = draw_ilsvrc if layout == "ilsvrc" else draw_tree
    tree = draw(dest, images=images, classes=classes, seed=seed, defects=defects)
    size = f"{tree.bytes / 1e6:,.1f} MB"
    show(f"{tree.images:,} photos in {tree.classes:,} classes, {size} -> {tree.root}")
    for name, expected in tree.defects.items():
        show(f"  {escape(name)}: {expected}")


def init(
    dest: Annotated[
        Path, typer.Argument(metavar="DEST", help="The folder in which to create 'configs'.")
    ] = Path(),
) -> None:
    """Copy the example configs. Existing files are not changed."""
    from dataprep.cli.output import show
    from dataprep.config.files import EXAMPLES
    from dataprep.errors import Changes

    changes = Changes()
    with changes.exit_codes():
        for path in sorted(EXAMPLES.rglob("*.*")):
            copy = dest / "configs" / path.relative_to(EXAMPLES)
            if not copy.exists():
                copy.parent.mkdir(parents=True, exist_ok=True)
                changes.begin()
                shutil.copyfile(path, copy)
            show(str(copy))


def schema() -> None:
    """Print the JSON schema of a config, for editors."""
    from dataprep.config.files import editor_schema
    from dataprep.config.shard_config import ShardConfig

    typer.echo(editor_schema(ShardConfig, "A sharding config of dataprep"), nl=False)
