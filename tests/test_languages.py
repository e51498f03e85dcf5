"""Models as files: found, named, read, also from a zip; kinds of seeds and their distance, what is said of few."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from spiderling.base.errors import BadInput
from spiderling.base.files import zstd
from spiderling.languages import (
    BIG_WEB_LANGUAGES,
    GROUPS,
    available,
    find_languages,
    load,
    only_as_group,
    registry,
    to_recognise,
)
from spiderling.languages.seeds import distances, few_hosts, read_seeds
from spiderling.training import save, sentences, train

ROOT = Path(__file__).parent.parent
TEXT = "Tohle je první věta našeho textu.\nTohle je druhá věta, která je delší.\nA tohle je věta třetí a poslední."


@pytest.fixture
def own(tmp_path):
    """A directory with a model of Upper Sorbian."""
    save(tmp_path / "hsb", {"name": "Upper Sorbian", "iso3": "hsb"}, train("hsb", sentences([TEXT])))
    return tmp_path


def test_bundled_models():
    models = available()
    assert {"cs", "sk", "pl", "de", "en"} <= set(models)
    czech = models["cs"]
    assert (czech.code, czech.iso3, czech.name, czech.native) == ("cs", "ces", "Czech", "čeština")
    assert (czech.tlds, czech.neighbours) == (("cz",), ("sk", "pl"))
    assert "windows-1250" in czech.encodings
    assert czech.spaced
    assert next(iter(czech.words().values())) == max(czech.words().values())


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Czehc", ["'Czehc'", "Did you mean cs (Czech)?", "scrapy train"]),
        ("Czehc", ["scrapy train CODE text.txt"]),
        ("cs,xx", ["'xx'", "scrapy languages", "scrapy train xx text.txt"]),
        ("cz", ["Did you mean cs (Czech)?"]),
        ("pt-BR", ["Did you mean pt (Portuguese)?"]),
        ("zh_TW", ["Did you mean zh (Chinese)?"]),
        ("", ["no language is named"]),
        (" , ", ["no language is named"]),
    ],
)
def test_an_unknown_language_says_what_to_do(text, parts):
    with pytest.raises(BadInput) as error:
        find_languages(text)
    assert all(part in str(error.value) for part in parts), str(error.value)


def test_own_directories_come_first(own):
    assert [info.name for info in find_languages("hsb,cs", str(own))] == ["Upper Sorbian", "Czech"]
    save(own / "cs", {"name": "My Czech"}, train("cs", sentences([TEXT])))
    assert available(f"{own}:")["cs"].name == "My Czech"
    with pytest.raises(BadInput, match="not a directory"):
        available(f"{own}/nowhere")


def test_what_is_told_apart(own):
    assert to_recognise(find_languages("cs")) == [
        "cs",
        "sk",
        "pl",
        *(code for code in BIG_WEB_LANGUAGES if code != "pl"),
    ]
    assert to_recognise(find_languages("de"), "hsb", str(own))[:5] == ["de", "hsb", "lb", "nl", "en"]


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        *((name, ["cs"]) for name in ("cs", "ces", "Czech", "CZECH", "čeština", " cs , ces ")),
        ("sk,cs,German", ["sk", "cs", "de"]),
        ("hbs", ["bs", "hr", "sr"]),
        ("HBS,cs", ["bs", "hr", "sr", "cs"]),
        ("cnr", ["bs", "hr", "sr"]),
        ("no", ["nb", "nn"]),
        ("Norwegian", ["nb", "nn"]),
        ("msa", ["id", "ms"]),
        ("zho", ["zh", "yue"]),
        ("cmn", ["zh"]),
        ("nguni", ["xh", "zu", "ss"]),
        ("sotho", ["st", "nso", "tn"]),
        ("ger,FRE,Farsi", ["de", "fr", "fa"]),
        ("Filipino", ["tl"]),
        ("is", ["is"]),
        ("Norwegian Bokmål", ["nb"]),
    ],
)
def test_groups_and_other_names(text, codes):
    assert [info.code for info in find_languages(text)] == codes


@pytest.mark.parametrize(
    ("text", "told"),
    [("ms", "-a lang=msa"), ("bs,hr", "-a lang=hbs"), ("msa", ""), ("hbs", ""), ("id", ""), ("hr,sr", "")],
)
def test_who_wants_a_language_that_cannot_be_told_apart_is_told_of_the_group(text, told):
    warnings = only_as_group(find_languages(text))
    assert len(warnings) == bool(told)
    assert told in "".join(warnings)


def test_a_model_of_ones_own_joins_its_group(own):
    save(own / "cnr", {"name": "Montenegrin", "iso3": "cnr"}, train("cnr", sentences([TEXT])))
    assert [info.code for info in find_languages("hbs", str(own))] == ["bs", "hr", "sr", "cnr"]
    assert [info.code for info in find_languages("cnr", str(own))] == ["cnr"]


def test_no_two_languages_share_a_name():
    names = [
        name.lower() for info in available().values() for name in (info.name, info.native, info.code, *info.aliases)
    ]
    shared = {name for name in names if names.count(name) > 1}
    assert shared == {info.name.lower() for info in available().values() if info.name.lower() == info.native.lower()}
    iso3 = [info.iso3 for info in available().values()]
    assert len(set(iso3)) == len(iso3)
    assert not set(iso3) & set(GROUPS)


def test_seeds_have_kinds_and_the_trusted_ones_are_marked():
    czech = available()["cs"]
    seeds = czech.seeds()
    assert seeds[0] == ("https://cs.wikipedia.org/", "encyclopedia", True)
    assert {seed.kind for seed in seeds if seed.trusted} >= {"news", "government"}
    assert {seed.kind for seed in seeds if not seed.trusted} == {"other", "political parties"}
    assert 70 < len(seeds) == len({seed.url for seed in seeds})


def test_a_model_survives_writing(own):
    model = train("hsb", sentences([TEXT]))
    assert available(str(own))["hsb"].model() == model
    assert load(["hsb", "cs"], str(own)).codes == ("hsb", "cs")
    first = {path.name: path.read_bytes() for path in (own / "hsb").iterdir()}
    save(own / "hsb", {"name": "Upper Sorbian", "iso3": "hsb"}, model)
    assert first == {path.name: path.read_bytes() for path in (own / "hsb").iterdir()}


def test_words_that_look_like_yaml_survive(own):
    text = "\n".join(f"no on yes {word}" for word in ("null", "off", "true", "y", "n"))
    model = train("zz", sentences([text]))
    save(own / "zz", {"name": "Zz"}, model)
    assert available(str(own))["zz"].model().profile == model.profile


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("language.yaml", b"[1, 2"),
        ("language.yaml", b"- a list"),
        ("language.yaml", b"badness: {a: 1}"),
        ("language.yaml", b"badness: [a, b]"),
        ("language.yaml", b"encodings: 7"),
        ("language.yaml", b"\xff\xfe"),
        ("words.txt", b"a\tmany\n"),
        ("words.txt", b"a 1\n"),
        ("words.txt", b"\xff"),
        ("ngrams.zst", b"not zstd"),
        ("ngrams.zst", zstd.compress(b'{"1": [9, 9]}\nabc')),
        ("ngrams.zst", zstd.compress(b'{"2": [1, 1]}\na\1\0\0\0')),
        ("ngrams.zst", zstd.compress(b"[]\n")),
        ("ngrams.zst", zstd.compress(b'{"1": 5}\n')),
        ("ngrams.zst", None),
    ],
)
def test_damaged_files_are_named(own, name, content):
    path = own / "hsb" / name
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(BadInput, match=f"{name}.*train"):
        load(["hsb"], str(own))


def test_only_the_models_named_by_code_are_read(own, monkeypatch):
    read, description = [], registry.read_description
    monkeypatch.setattr(registry, "read_description", lambda place: read.append(place.name) or description(place))
    accepted = find_languages("cs,SK,cs")
    assert [found.code for found in accepted] == ["cs", "sk"]
    assert len(to_recognise(accepted)) > len(BIG_WEB_LANGUAGES)
    assert read == ["cs", "sk"]


def test_stop_lists(own):
    models = load(["cs", "hsb"], str(own))
    assert len(models["cs"].stoplist) > 1000, "the justext package's"
    assert "je" in models["hsb"].stoplist
    assert len(models["hsb"].stoplist) < 10


@pytest.mark.slow
def test_from_a_zipped_egg(tmp_path):
    egg = tmp_path / "project.egg"
    with zipfile.ZipFile(egg, "w") as archive:
        text = ROOT / "spiderling/text"
        data = [text / "boilerplate/model.json", text / "encoding/labels.txt", text / "months.txt"]
        for path in [*(ROOT / "spiderling").rglob("*.py"), *data]:
            archive.write(path, path.relative_to(ROOT))
        for path in [ROOT / "models" / "__init__.py", *(ROOT / "models" / "cs").iterdir()]:
            archive.write(path, f"spiderling/{path.relative_to(ROOT)}")
    script = """
import asyncio, sys
import spiderling, spiderling.languages as languages
from spiderling.text import TextOptions
from spiderling.workers.pool import Task, WorkerConfig, WorkerPool
async def main():
    pool = WorkerPool(1, WorkerConfig(TextOptions(("cs",)), ("cs",)), 20)
    await pool.start()
    page = await pool.process(Task("<p>Kočka šla domů.".encode(), "http://127.0.0.1/"))
    await pool.stop()
    print(spiderling.__file__, *languages.available(), page.paragraphs[0].text)
asyncio.run(main())
"""
    done = subprocess.run(
        [sys.executable, "-c", script], env={"PYTHONPATH": str(egg)}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.split() == [f"{egg}/spiderling/__init__.py", "cs", "Kočka", "šla", "domů."], done.stderr


# -- seeds


def test_few_hosts() -> None:
    urls = [f"http://h{number}.cz/{page}" for number in range(73) for page in range(3)]
    told = few_hosts(urls, "cs", 5.0)
    assert told.startswith("73 seed hosts, asked every 5 s, can give at most 14.6 pages/s")
    assert few_hosts(urls[:1], "cs", 5.0).startswith("1 seed host, asked every 5 s, can give at most 0.2 pages/s")
    assert told.endswith(
        "scrapy seeds wikipedia cswiki-latest-externallinks.sql.gz -a lang=cs -o seeds.txt --per-host 1"
    )
    assert "https://dumps.wikimedia.org/cswiki/latest/cswiki-latest-externallinks.sql.gz," in told
    assert "/nowiki/latest/nowiki-" in few_hosts(urls, "nb", 5.0)


@pytest.mark.parametrize(("hosts", "interval_s"), [(100, 5.0), (3, 0.0)])
def test_enough_hosts(hosts: int, interval_s: float) -> None:
    assert few_hosts([f"http://h{number}.cz/" for number in range(hosts)], "cs", interval_s) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.cz\n# news\nb.cz\n", [0, 0]),
        ("# news (trusted)\na.cz\n# trusted\nb.cz\n#\nc.cz\n# (trusted)\nd.cz\n", [0, 1, 1, 0]),
    ],
)
def test_only_trusted_seeds_are_at_distance_0_where_there_are_any(tmp_path, text, expected) -> None:
    path = tmp_path / "seeds.txt"
    path.write_text(text)
    assert [distance for _, distance in distances(read_seeds(str(path)))] == expected
