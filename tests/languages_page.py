"""docs/languages.md, made from the models and from what benchmarks/language.py --save measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from spiderling.languages import GROUPS, LanguageInfo, available

MEASURED = Path(__file__).parents[1] / "benchmarks" / "language.tsv"
HEAD = """\
# Languages

`-a lang=` takes the codes and names of this page, several with commas. For each there is a model in `models/`: counts
of n-grams and words, the badness of its texts, its legacy encodings, seeds. A crawl loads the models of the accepted
languages, of the neighbours that they name, and of the big languages of the web; `-a recognise=` adds others.

## Groups
Languages that differ less than their texts do may be accepted as one:

| code | accepts |
|---|---|
"""
AFTER_GROUPS = """\

Montenegrin (cnr) has no model of its own; its texts are taken for Bosnian, Croatian or Serbian, so `cnr` means `hbs`.
Persian (fa) is made of texts of Iran and Afghanistan, Chinese (zh) of simplified and traditional ones, Serbian, Uzbek
and Crimean Tatar of two alphabets: each is one model. Any other set is given as a list: `-a lang=xh,zu`.

## Is it in that language at all?
The nearest language is not enough: a page in Limburgish would be Dutch. A document is taken only if its *known share*
reaches `SPIDERLING_MIN_KNOWN_SHARE` (.5): the share of its 4-grams that are usual in the language, in units of what
the language's own texts have. How many NTREX documents in other languages are wrongly accepted all the same:

| set-up | accepted % |
|---|---|
| one language accepted, the defaults of a crawl | .13 |
| 31 accepted, neighbours and big languages loaded, at the share that 95 % of their documents reach | 1.6 |
| 31 accepted, nothing else loaded, at the same share | 6.8 |
| all accepted, 13 languages without a model | 17 |

Burmese and Yoruba, which NTREX writes in other letters than Unicode's, are left out of that share's bar; with them
the second and third rows are 3.2 and 17.
So load the languages that yours is taken for: `-a recognise=`. The last two rows are close relatives (Slovak for
Czech, Galician for Portuguese; Ndebele for Zulu). Documents of these fall below .5 and are lost: Burmese in Zawgyi,
Yoruba in the letters of old fonts, Serbian in Cyrillic with Latin a, e, o among it, and traditional Chinese as `zh`
alone (`-a lang=zho`). Malayalam (median .58) is near it: a lower threshold keeps more.

## Train your own
```
scrapy train hsb wikipedia.txt news.txt --name 'Upper Sorbian' --neighbours cs,pl,de --out my-models
scrapy identify page.html -s SPIDERLING_MODELS=my-models
scrapy crawl spiderling -a lang=hsb -a seeds=FILE -s SPIDERLING_MODELS=my-models
```
Plain UTF-8 text, best one sentence or paragraph a line; it works from 5 kB, and well from 50 kB. The command says
what it learned, tries it on a tenth of the text beside its neighbours, prints what these lines were taken for, and
warns of lines in another language and of a language that it can hardly tell apart. `--add` adds text to a model that
there is (those with few kB below gain most), `--encodings` names the legacy encodings of pages where the alphabet does
not say it. Models in the directories of `SPIDERLING_MODELS` come before the bundled ones.

## Bundled
kB: training text (of a frequency list, the list). Documents and sentences: per cent recognised among all models, in
1000 and in at most 120 characters of NTREX-128 (news, of another source than any training text), a group counted as
one language; in brackets without that. "-": NTREX does not have the language. Frequency lists count as text that is
drawn from them. With less than 50 kB a model is a beginning: `scrapy train CODE text.txt --add`. `make models` builds
them anew, [models/README.md](../models/README.md) has the licences.

| code | language | native | kB | documents | sentences | texts | seeds |
|---|---|---|---|---|---|---|---|
"""
SHORT = {
    "Mozilla Common Voice, sentences": "Common Voice",
    "Unicode Unilex, frequency list": "Unilex",
    "HornMT, sentences": "HornMT (CC BY)",
    "Multilingual Bible Parallel Corpus": "Bible",
    "Universal Declaration of Human Rights": "UDHR",
    "FrequencyWords, from OpenSubtitles 2016 and 2018": "FrequencyWords (CC BY-SA)",
}


def languages_page() -> str:
    """The whole page."""
    models = available()
    measured = _measured()
    text = HEAD
    for code, members in GROUPS.items():
        named = [f"{models[member].name} ({member})" for member in members if member in models]
        text += f"| `{code}` | {', '.join(named)} |\n"
    text += AFTER_GROUPS
    rows = (_row(info, measured.get(info.code)) for info in sorted(models.values(), key=lambda info: info.name))
    return text + "".join(rows)


def _row(info: LanguageInfo, measured: Mapping[str, float] | None) -> str:
    documents = f"{measured['documents']:.1f}" if measured else "-"
    sentences = "-"
    if measured:
        sentences = f"{measured['sentences']:.1f}"
        if measured["strict"] != measured["sentences"]:
            sentences += f" ({measured['strict']:.1f})"
    texts = ", ".join(SHORT[text["source"]] for text in info.origin["texts"])
    kb = int(info.origin["bytes"]) // 1000
    return (
        f"| `{info.code}` | {info.name} | {info.native} | {kb:,} | {documents} | {sentences} | {texts} | "
        f"{len(info.seeds())} |\n"
    )


def _measured() -> dict[str, dict[str, float]]:
    head, *rows = (line.split("\t") for line in MEASURED.read_text("utf-8").splitlines())
    return {row[0]: dict(zip(head[1:], map(float, row[1:]), strict=True)) for row in rows}
