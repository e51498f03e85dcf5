"""docs/languages.md, made from the models and from what benchmarks/language.py --save measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spiderling.languages import GROUPS, LanguageInfo, available

MEASURED = Path(__file__).parents[1] / "benchmarks" / "language.tsv"
SMALL_BYTES = 50_000
HEAD = """\
# Languages

`-a lang=` takes the codes and names of this page, several with commas. Each language has a model in `models/`: counts
of n-grams and words, the badness of its texts, its legacy encodings, seeds. A crawl loads the models of the accepted
languages, of their neighbours and of the big languages of the web; `-a recognise=` adds others.

## Groups
Close languages can be accepted as one:

"""
AFTER_GROUPS = """\

Any other set is given as a list: `-a lang=xh,zu`. Montenegrin (`cnr`) means `hbs`. Malay and Bosnian alone are told
from Indonesian, Croatian and Serbian in every second document only: accept them with their groups, `-a lang=msa` and
`-a lang=hbs`. Chinese in traditional characters is Chinese (zh); Cantonese (yue) is what is written in its own
characters. South Ndebele (nr) has no model: it would take 6 % of Zulu sentences.

## Is it in that language at all?
The nearest model is not enough: it takes a page in Limburgish for Dutch. So a document is kept only if its *known
share* reaches `SPIDERLING_MIN_KNOWN_SHARE` (.6): the share of its 4-grams that are usual in the language, divided by
that of the language's own texts, and less if too many of its short words without capitals are not in the model's list.
Of documents of 1,000 characters in known languages .1 % are refused. Of those in other languages pass:

- with one language accepted, its neighbours and the big languages loaded: .04 %;
- with all accepted: 8.4 % of 159 languages without a model, 23 % of the closest 9, often varieties of one language
  (Ndebele for Zulu, Kirundi for Kinyarwanda). So load the languages that are mistaken for yours: `-a recognise=`.

Refused are also Burmese in Zawgyi, Azerbaijani in Cyrillic, pages half of which are programs or quotations, and 1 % of
English pages, most of them lists of products. A threshold of .5 keeps them.

## Train your own
```
scrapy train hsb wikipedia.txt news.txt --name 'Upper Sorbian' --neighbours cs,pl,de --out my-models
scrapy identify page.html -s SPIDERLING_MODELS=my-models
scrapy crawl spiderling -a lang=hsb -a seeds=FILE -s SPIDERLING_MODELS=my-models
```
To add text to a model, train it again from all of its texts (`--force`). `--encodings` names legacy encodings.
Models in the directories of
`SPIDERLING_MODELS` come before the bundled ones. [low-resource.md](low-resource.md) says how, step by step.

## Bundled
Per cent of documents/sentences that are recognised with all models loaded, of news (NTREX-128) and of the web (test
data of [lingua-py](https://github.com/pemistahl/lingua-py)); no training text is from there. Of groups the first
figure counts them as one language, in brackets each by itself. A star marks a model of less than 50 kB of text, which
is a beginning. `scrapy languages` shows sizes, native names and seeds; [models/README.md](../models/README.md) has
the sources and licences; `make models` builds all again.

"""


def languages_page() -> str:
    """The whole page."""
    models = available()
    measured = _measured()
    text = HEAD
    for code, members in GROUPS.items():
        named = [f"{models[member].name} ({member})" for member in members if member in models]
        text += f"- `{code}`: {', '.join(named)}\n"
    text += AFTER_GROUPS
    rows = (_row(info, measured.get(info.code, ["-"] * 4)) for info in sorted(models.values(), key=_name))
    return text + "".join(rows)


def _name(info: LanguageInfo) -> str:
    return info.name


def _row(info: LanguageInfo, measured: Sequence[str]) -> str:
    star = "*" if int(info.origin["bytes"]) < SMALL_BYTES else ""
    news, web = ("-" if set(pair) == {"-"} else "/".join(pair) for pair in (measured[:2], measured[2:4]))
    return f"- `{info.code}` {info.name}{star}: {news}, {web}\n"


def _measured() -> dict[str, list[str]]:
    rows = (line.split("\t") for line in MEASURED.read_text("utf-8").splitlines())
    return {row[0]: row[1:] for row in rows}
