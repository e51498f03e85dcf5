"""docs/languages.md, made from the models and from what benchmarks/language.py --save measured."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from spiderling.languages import GROUPS, LanguageInfo, available

MEASURED = Path(__file__).parents[1] / "benchmarks" / "language.tsv"
HEAD = """\
# Languages

`-a lang=` takes the codes and names of this page, several with commas. Each language has a model in `models/`: counts
of n-grams and words, the badness of its texts, its legacy encodings, seeds. A crawl loads the models of the accepted
languages, of their neighbours (which the models name) and of the big languages of the web; `-a recognise=` adds others.

## Groups
Close languages can be accepted as one:

| code | accepts |
|---|---|
"""
AFTER_GROUPS = """\

Any other set is given as a list: `-a lang=xh,zu`. Montenegrin (cnr) has no model of its own; its texts are taken for
Bosnian, Croatian or Serbian, so `cnr` means `hbs`. Malay and Bosnian are told from Indonesian, Croatian and Serbian in
every second document only: their models rest on lists of words that are mixed with the sisters'. So accept them with
their groups, `-a lang=msa` and `-a lang=hbs`; a crawl of `ms` or `bs` alone warns. Standard Chinese in traditional
characters is Chinese (zh); Cantonese (yue) is what is written in its own characters, such as 嘅, 唔, 喺. South
Ndebele (nr) has no model: with one, 6 % of the Zulu sentences were taken for it. Some models are made of two kinds of
texts: Persian (fa) of Iran and Afghanistan, Chinese (zh) of simplified and traditional characters, Serbian, Uzbek and
Crimean Tatar of two alphabets.

## Is it in that language at all?
The nearest model is not enough: it takes a page in Limburgish for Dutch. So a document is kept only if its *known
share* reaches `SPIDERLING_MIN_KNOWN_SHARE` (.6). That is the share of its 4-grams that are usual in the language,
divided by the share that is expected in its texts. It falls in proportion if more of the text's short words than
expected are not in the model's word list: Scots has the n-grams of English, but not its function words. Words with a
capital letter, most of them names, do not count there. Some languages count differently: those that are alone in a
script, whose words are often long (Telugu, Kannada, Thai), and Yoruba, whose words count without tone marks. Documents
of 1,000 characters in other languages that pass all the same:

| set-up | accepted % |
|---|---|
| one accepted, neighbours and big languages loaded, threshold .6 | .04 |
| 34 accepted, neighbours and big languages loaded, threshold where 95 % of their own documents pass | .35 |
| 34 accepted, nothing else loaded, the same threshold | 2.1 |
| all accepted, 9 languages of NTREX without a model, the same threshold | 5.9 |
| all accepted, the same 9, threshold .6 | 23 |
| all accepted, 159 languages of the Universal Declaration without a model, threshold .6 | 8.4 |

At .6 with all accepted, .1 % of the documents of NTREX in known languages are refused, and 1.6 % of single sentences.
The constants were chosen on 162 other languages of the Universal Declaration, of which 12 % of the documents are
accepted.
What is left are the closest relatives, often varieties of one language: Ndebele for Zulu, Tahitian for Maori, Kirundi
for Kinyarwanda, Gagauz for Turkish. So load the languages that are mistaken for yours: `-a recognise=`. (NTREX does not
write Burmese and Yoruba in standard Unicode, so these figures leave them out.)

Some documents in the right language are refused: Burmese in Zawgyi, Azerbaijani in Cyrillic, pages half of which are
listings of programs or quotations, and 1 % of English pages, most of them lists of products. A threshold of .5 keeps
them.

## Train your own
```
scrapy train hsb wikipedia.txt news.txt --name 'Upper Sorbian' --neighbours cs,pl,de --out my-models
scrapy identify page.html -s SPIDERLING_MODELS=my-models
scrapy crawl spiderling -a lang=hsb -a seeds=FILE -s SPIDERLING_MODELS=my-models
```
Give plain UTF-8 text, best one sentence or paragraph a line: 5 kB at least, 50 kB for a good model. The command says
what it learned, tests the model and its neighbours on a tenth of the text, prints which languages it took these lines
for, and warns of lines in another language and of a language that is hard to tell apart. `--add` adds text to an
existing model, first that in `--out` (those with few kB gain most), `--encodings` names the legacy encodings of pages
where the alphabet does not tell them. Models in the directories of `SPIDERLING_MODELS` come before the bundled ones.

## Bundled
- *kB* is the size of the training text, or of the frequency list from which it was drawn.
- *Documents* and *sentences* are per cent recognised with all models loaded. *News* is NTREX-128, documents of 1,000
  and sentences of at most 120 characters; *web* is the test data of [lingua-py](https://github.com/pemistahl/lingua-py),
  documents of ten sentences. No training text is from there. In the first figure `hbs`, `msa`, `nor` and `zho` count
  as one language each, in brackets each language by itself. "-": it does not have the language.
- With less than 50 kB a model is a beginning: `scrapy train CODE text.txt --add --out my-models` adds text.
- `make models` builds all anew; [models/README.md](../models/README.md) has the licences.

| code | language | native | kB | news documents | sentences | web documents | sentences | texts | seeds |
|---|---|---|---|---|---|---|---|---|---|
"""
SHORT = {
    "Mozilla Common Voice, sentences": "Common Voice",
    "Unicode Unilex, frequency list": "Unilex",
    "HornMT, sentences": "HornMT (CC BY)",
    "Multilingual Bible Parallel Corpus": "Bible",
    "Universal Declaration of Human Rights": "UDHR",
    "State of the Nation addresses of South Africa, sentences": "State of the Nation (CC BY)",
    "Universal Dependencies, sentences": "Universal Dependencies (CC BY-SA)",
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
    rows = (
        _row(info, measured.get(info.code, ["-"] * 4)) for info in sorted(models.values(), key=lambda info: info.name)
    )
    return text + "".join(rows)


def _row(info: LanguageInfo, measured: Sequence[str]) -> str:
    texts = ", ".join(SHORT[text["source"]] for text in info.origin["texts"])
    kb = int(info.origin["bytes"]) // 1000
    return (
        f"| `{info.code}` | {info.name} | {info.native} | {kb:,} | {' | '.join(measured)} | {texts} | "
        f"{len(info.seeds())} |\n"
    )


def _measured() -> dict[str, list[str]]:
    rows = (line.split("\t") for line in MEASURED.read_text("utf-8").splitlines())
    return {row[0]: row[1:] for row in rows}
