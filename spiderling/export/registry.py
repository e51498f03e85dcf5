"""The registry file of a vertical file: what Sketch Engine and NoSketch Engine read to compile and show a corpus.

It declares each structure and attribute that occurs, and no other (documentation of the corpus configuration file on
sketchengine.eu).  PATH and VERTICAL are those of a server that keeps each corpus in a directory of /corpora.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from spiderling.languages import available

_TAG = re.compile(r"^<([a-z][^<>]*?)/?>$", re.MULTILINE)
_NAME = re.compile(r' ([\w:.-]+)="')
_UNPACKERS = {".gz": "| zcat", ".zst": "| zstd -dcq"}
_ROOT = "/corpora"
_LOWER_CASE = """\
ATTRIBUTE "lc" {
\tDYNAMIC "utf8lowercase"
\tDYNLIB "internal"
\tARG1 "C"
\tFUNTYPE "s"
\tFROMATTR "word"
\tTYPE "index"
\tTRANSQUERY "yes"
}"""
_GLUE = ['\tDISPLAYTAG "0"', '\tDISPLAYBEGIN "_EMPTY_"']
"""Between the tokens beside a ``<g/>`` no space is shown."""


class Registry:
    """Collects what one part of a vertical corpus declares."""

    def __init__(self) -> None:
        self._structures: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """Structure -> its attributes, in the order in which they came."""
        self._languages: Counter[str] = Counter()

    def see(self, attributes: Mapping[str, str], text: str) -> None:
        """Note the structures in *text*, a document with *attributes* as it stands in the file."""
        self._languages[attributes.get("lang", "")] += 1
        for tag in dict.fromkeys(_TAG.findall(text)):
            self._structures[tag.partition(" ")[0]] |= dict.fromkeys(_NAME.findall(tag))

    def text(self, name: str, files: Sequence[str]) -> str:
        """The registry file of the corpus *name*, whose vertical *files* follow one another."""
        return "\n".join(self._lines(name, files)) + "\n"

    def _lines(self, name: str, files: Sequence[str]) -> Iterator[str]:
        place = f"{_ROOT}/{name}"
        verticals = " ".join(f"{place}/vertical/{file}" for file in files)
        ending = re.sub(r".*(?=\.)", "", files[0])
        unpacker = _UNPACKERS.get(ending, "| cat" if len(files) > 1 else "")
        (code, _), *_ = self._languages.most_common(1) or [("", 0)]
        language = available("").get(code)
        yield f"# Registry file; it becomes {name} in the directory of registry files."
        yield "# Change PATH (for the compiled corpus) and VERTICAL if your server has other places for them."
        yield f'NAME "{name}"'
        yield f'PATH "{place}/indexed/"'
        yield f'VERTICAL "{unpacker} {verticals}"' if unpacker else f'VERTICAL "{verticals}"'
        yield 'ENCODING "UTF-8"'
        if language is not None:
            yield f'LANGUAGE "{language.name}"'
        yield 'DOCSTRUCTURE "doc"'
        yield 'ATTRIBUTE "word"'
        yield _LOWER_CASE
        for structure, attributes in self._structures.items():
            inside = _GLUE if structure == "g" else [f'\tATTRIBUTE "{attribute}"' for attribute in attributes]
            yield from [f'STRUCTURE "{structure}" {{', *inside, "}"] if inside else [f'STRUCTURE "{structure}"']
