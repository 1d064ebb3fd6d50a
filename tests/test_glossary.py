"""The glossary defines the terms that the commands use."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from dataprep.cli.main import app as dataprep_app
from iobench.cli.main import app as iobench_app

GLOSSARY = Path(__file__).parents[1] / "docs/glossary.md"
PROGRAMS = {"dataprep": dataprep_app, "iobench": iobench_app}
NOT_PROSE = re.compile(
    r"--?[\w-]+"  # option names
    r"|\S*[/:=._]\S*\w"  # paths, addresses, config keys and option values
    r"|\b[A-Z_]{2,}\b"  # placeholders such as RUN_DIR, and abbreviations
)
WORD = re.compile(r"[a-z]+(?:-[a-z]+)*")
_EVERYDAY_TEXT = """
changed damaged earlier encoded ends existing libraries location names percentage server unchanged
a able about above accelerator according across add address adds after again all already also
although always amount and anew another any appear applies apply are as ask asks auto available
away back bandwidth base be because becomes been before beforehand begin begins behind being
below beside better between beyond big both bring brings broken build builds busy but by
calculate call called can cannot case cases cause certain change changed changes check child
children choose chosen code collections column columns combine come comes command compare
compared compares comparison complete completion computer computes connect connection consider
consume consumes contain containing contains content contents continue continues convert copies
copy correct correctly cost costs could count counted counting counts create created creates
crop current customize damaged data dataprep day days decide decides default defaults definition
delays delete deleted describe describes description detail details determine devkit did differ
different directories directory disk distinguished do does done doubt downloaded draw drawn
during each earlier early easy edit editors either else empty encoded end ends enough equal
error errors estimate estimates even ever every everything exact example examples except exist
existing exists exit expect expected explain extra fail failed far fast faster faults few fewer
field fields file files fill final finalize finalizes find finds first five flat folder folders
follow following follows for form found free from full further gain generate get gets give given
gives go goes good got great h half happen happens hard has have having help high higher highest
hold hour hours how however i id identify if ignore ignored image images in include included
includes including increase init injected input inside install installation instead instruction
interrupted interval into iobench is it its just keep keeps kind know known large larger largest
last later latest least leave left length less let letter level libraries like likely limit
limits line lines list lists little local location long look low lower lowest machine machines
main make makes many marks match matches maximum may mean meaning means measure measures
measuring member message middle minimum minute minutes missing mode month more most mounted move
much must n name named names near necessary need needs network never new newer newest next no
none not note nothing now number numbers object obtain off often old older on once one ones only
open opens opposite option options or order ordered original other others otherwise our out over
override overwrite own page pair paired parent pass passes path per percentage person persons
photo photos pixels place plain plan planned please point points possible prefer present
previous price prices print prints program programs provide provides published put quality quick
quickly quiet quirk rather re read reads ready real really reason reasons recent recommend
reduce refuse refused relative remain remaining remains remove removed repeat repeatable
repeated repeats replace replaces report requested requests require required requires respect
rest result resume return returns right row rows rules running s same save saved saves saying
says second seconds section see seen select selected send sends sentence separate separately
server set sets several share sheet shell short should show showing shown shows similar simple
since single size sizes skip skipped slow slower smallest so some something sort sorted special
specified started starting starts state states stay stdout still stop stopped stops string
submit such sum supported sure systems table tables take takes tell tells test text than that
their them then there therefore these they thing things this those through timeline to too total
train training try turn turns twice two type unchanged under understand unit units unknown
unless unlimited until unused up us use used user users uses using usual usually valid value
values various version very view wait want was way ways week well were what when where which
while who whole why will with within without word words work works worse would write writes
writing written wrong x year years yes yet you your zero
"""
EVERYDAY = frozenset(_EVERYDAY_TEXT.split())
"""Words that every reader knows. All other words of a help text must be in the glossary."""


def help_texts(command: Any) -> Iterator[str]:
    """The help texts of a command, of its options and of the commands below it."""
    yield command.help or ""
    for parameter in command.params:
        yield getattr(parameter, "help", None) or ""
    for below in getattr(command, "commands", {}).values():
        yield from help_texts(below)


def words_of(text: str) -> set[str]:
    """The words of a text in lower case."""
    return set(WORD.findall(NOT_PROSE.sub(" ", text).lower()))


def defined_words() -> set[str]:
    """The words of the terms that the glossary defines."""
    terms = re.findall(r"^\*\*(.+)\*\*$", GLOSSARY.read_text(), flags=re.MULTILINE)
    return set(WORD.findall(" ".join(terms).lower()))


def is_defined(word: str, defined: set[str]) -> bool:
    """Whether the glossary has a word, or its singular."""
    singulars = {word, word.removesuffix("s"), word.removesuffix("es")}
    return bool(singulars & defined)


def undefined_terms(texts: Iterator[str]) -> set[str]:
    """The words of texts that are neither everyday words nor in the glossary."""
    defined = defined_words()
    actual: set[str] = set()
    for text in texts:
        actual |= words_of(text) - EVERYDAY
    return {word for word in actual if not is_defined(word, defined)}


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_term_of_a_help_text_is_in_the_glossary(program: str) -> None:
    """Every term of a help text is in the glossary.

    Define a new term in iobench/report/glossary.py, then run docs/generate.py.
    """
    command = typer.main.get_command(PROGRAMS[program])
    assert not undefined_terms(help_texts(command))


def test_a_term_that_the_glossary_lacks_is_found() -> None:
    """A help text with an unknown term would fail the test above; known terms do not."""
    assert undefined_terms(iter(["Shuffle the shards with a zoetrope."])) == {"shuffle", "zoetrope"}
    assert not undefined_terms(iter(["Number of shards. (default: --workers)"]))
