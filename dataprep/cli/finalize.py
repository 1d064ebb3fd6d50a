"""``dataprep finalize``: write the manifest after the parts of a job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from dataprep.cli.options import EndpointUrl, Json, OneSplit, Output, StoreSettings, store_options
from dataprep.errors import ConfigError, DataprepError, DatasetError, JobError


def finalize(
    output: Output,
    split: OneSplit = None,
    parts: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Number of parts of the job. An error then names the missing parts.",
        ),
    ] = None,
    max_failures: Annotated[
        str,
        typer.Option(
            metavar="LIMIT",
            help="Photos of the split that may fail: a number, a percentage, or unlimited.",
        ),
    ] = "1%",
    endpoint_url: EndpointUrl = None,
    set_: StoreSettings = None,
    as_json: Json = False,
) -> None:
    """Write the manifest of a split after all parts of its job."""
    from dataprep.cli.output import Terminal, show, split_text, splits_json
    from dataprep.config.shard_config import allowed_failures
    from dataprep.job.finish import finalize as finalize_split
    from dataprep.reading.splits import splits_in
    from dataprep.stores import open_store

    try:
        allowed_failures(max_failures, 0)
    except ConfigError as error:
        raise ConfigError(f"--max-failures {max_failures}: {error}") from None
    options = store_options(endpoint_url, set_)
    note = Terminal().note
    splits = [split] if split else splits_in(open_store(output, options))
    summaries = []
    errors: dict[str, DataprepError] = {}
    for name in splits:
        try:
            summary = finalize_split(
                output, name, max_failures=max_failures, parts=parts, options=options, note=note
            )
            summaries.append(summary)
        except (JobError, DatasetError) as error:
            # Continue, because the other splits may be ready.
            errors[name] = error
    if as_json:
        show(splits_json(summaries, incomplete=errors))
    else:
        for summary in summaries:
            show(split_text(summary))
    if errors:
        raise _combined(list(errors.values()), was_written=bool(summaries))


def _combined(errors: Sequence[DataprepError], *, was_written: bool) -> DataprepError:
    """Return one error for all splits that are not complete.

    Args:
        errors: the error of each split.
        was_written: whether the manifest of another split was written. The exit code 2 would mean
            that nothing was written.
    """
    combined_error = DataprepError("\n".join(str(error) for error in errors))
    combined_error.exit_code = max(error.exit_code for error in errors)
    if was_written:
        combined_error.exit_code = 1
    return combined_error
