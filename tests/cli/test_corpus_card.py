"""The card of a corpus: of a crawl that is killed and goes on, of an export, and when a file was changed since."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
import shlex
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from conftest import DEADLINE_S, ROOT, Crawl, scrapy
from finished import LICENCE, SEEDS
from huggingface_hub import DatasetCard, DatasetCardData

from spiderling.base.errors import StorageError
from spiderling.base.files import checksum, zstd
from spiderling.base.options import Options
from spiderling.frontier.storage.protocol import Changes, SegmentRow
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.jobdir.card import MANIFEST, README, Tally, readme_of, seeds_digest, write_card


@pytest.fixture(scope="module")
def manifest(finished) -> dict:
    return json.loads((finished.directory / "corpus" / MANIFEST).read_text("utf-8"))


def test_its_contents_are_those_of_the_corpus(finished, manifest):
    documents = finished.documents()
    contents = manifest["contents"]
    words = sum(int(doc.attributes["words"]) for doc in documents)
    assert (contents["documents"], contents["words"], contents["hosts"]) == (len(documents), words, 3)
    assert contents["languages"] == {"cs": {"documents": len(documents), "words": words}}
    assert contents["text_bytes"] == sum(int(doc.attributes["length"]) for doc in documents)
    assert contents["licences"] == {"none stated": len(documents) - 1, LICENCE: 1}
    assert contents["sure_licences"] == {LICENCE: 1}
    first, last = contents["crawl_dates"]
    assert all(first <= doc.attributes["crawl_date"] <= last for doc in documents)


def test_it_says_what_is_needed_to_make_it_again(manifest):
    (made,) = manifest["crawls"]
    assert made["seeds"] == [{"from": " ".join(SEEDS), "number": 2, "sha256": seeds_digest(SEEDS)}]
    assert set(made["models"]) == {"cs"}
    assert made["settings"]["host_interval_s"] == 0.02
    assert made["dedup"] == {"mode": "exact", "seen": ""}
    assert made["purposes"] == ["ai-train"]
    assert made["optouts"]["noai"] == "obey"
    assert made["urls_waiting"] == 0
    assert {"spiderling", "python", "lxml", "justext"} <= {name.lower() for name in manifest["software"]}


def test_its_checksums_are_those_of_sha256sum(finished, manifest):
    corpus = finished.directory / "corpus"
    assert len(manifest["files"]) > 1
    for file in manifest["files"]:
        data = (corpus / file["name"]).read_bytes()
        assert (file["bytes"], file["sha256"]) == (len(data), hashlib.sha256(data).hexdigest())
    assert {file["name"] for file in manifest["files"]} == {path.name for path in corpus.glob("*.prevert.zst")}


def test_the_readme_says_the_same(finished, manifest):
    text = (finished.directory / "corpus" / README).read_text("utf-8")
    assert text.startswith("---\nlanguage:\n- cs\n")
    assert f"{manifest['contents']['documents']:,} documents, {manifest['contents']['words']:,} words" in text
    assert f"Merkle tree is `{manifest['receipts']['root']}`" in text
    for wanted in (LICENCE, *(file["sha256"] for file in manifest["files"]), "SPIDERLING_HOST_INTERVAL_S=0.02"):
        assert wanted in text


def copy_of(finished: Crawl, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished.directory, tmp_path / "job"))


def test_a_segment_that_has_not_grown_keeps_its_checksum(finished, tmp_path):
    """Were it damaged since, a new one would hide that."""
    place = copy_of(finished, tmp_path) / "corpus" / MANIFEST
    told = json.loads(place.read_text("utf-8"))
    told["files"][0]["sha256"] = "0" * 64
    place.write_text(json.dumps(told))
    write_card(tmp_path / "job")
    assert json.loads(place.read_text("utf-8"))["files"] == told["files"]


@pytest.mark.parametrize("content", ["", "[1]", '{"files": [{"name": 1}, 2]}', '{"files": 3}', "\0"])
def test_a_damaged_card_is_no_card(finished, tmp_path, manifest, content):
    place = copy_of(finished, tmp_path) / "corpus" / MANIFEST
    place.write_text(content)
    write_card(tmp_path / "job")
    assert json.loads(place.read_text("utf-8"))["files"] == manifest["files"]


def test_an_export_has_a_card_with_the_crawls_it_was_made_of(finished, tmp_path, manifest):
    ended = scrapy("export", str(finished.directory), "-o", str(tmp_path / "b.jsonl"), "--where", "host GLOB 'l*'")
    assert ended.code == 0, ended.log
    told = json.loads((tmp_path / "b.jsonl.json").read_text("utf-8"))
    assert told["contents"]["documents"] == told["contents"]["hosts"] == 1
    assert told["contents"]["licences"] == {LICENCE: 1}
    assert told["crawls"] == manifest["crawls"]
    data = (tmp_path / "b.jsonl").read_bytes()
    assert len(told["receipts"]["root"]) == 64
    assert told["files"] == [
        {"name": "b.jsonl", "documents": 1, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    ]
    page = (tmp_path / "b.jsonl.README.md").read_text("utf-8")
    assert "1 documents" in page and "b.jsonl.json" in page and MANIFEST not in page
    assert str(tmp_path.parent.parent) not in page + json.dumps(told)


def crawl_with(directory: Path, options: dict[str, object], seeds: str, archive: str = "") -> Path:
    """The state of a crawl with *options* and a document."""
    (directory / "corpus").mkdir(parents=True)
    (directory / "state").mkdir()
    segment = directory / "corpus/cs-00001.prevert.zst"
    segment.write_bytes(zstd.compress(b'<doc url="http://a.test/">\n</doc>\n'))
    meta = {"options": options, "seeds": [{"from": seeds, "number": 1, "sha256": "0" * 64}]}
    meta |= {f"archive:{archive}": {}} if archive else {}
    store = SqliteStore(directory / "state/frontier.sqlite")
    rows = [SegmentRow(segment.name, segment.stat().st_size, 1)]
    store.commit(Changes(segments=rows, meta={key: json.dumps(value) for key, value in meta.items()}))
    store.close()
    return directory


def card_in(directory: Path) -> tuple[str, str]:
    write_card(directory)
    return (directory / "corpus" / README).read_text("utf-8"), (directory / "corpus" / MANIFEST).read_text("utf-8")


def test_it_has_no_path_and_no_address_of_the_machine(tmp_path):
    files = [
        spec.name
        for spec in fields(Options)
        if re.search(r"\b[Ff]iles? (?:of|with)|[Dd]irector", spec.metadata["help"])
    ]
    naming = {"only_hosts", "block", "models", "seen", "archive_urls", "boilerplate_model", "cluster_key_file",
              "snapshots", "coverage_lists"}  # fmt: skip
    assert naming == set(files)
    options = dict.fromkeys(files, "/home/me/lists/mine.txt") | {
        "lang": "cs", "contact": "me@example.org", "hosts": "*.test=127.9.9.9:81", "allow_networks": "127.0.0.0/8",
        "nameservers": "127.9.9.9", "max_words": 5,
    }  # fmt: skip
    page, manifest = card_in(crawl_with(tmp_path / "job", options, "/home/me/seeds.txt"))
    assert not re.search(r"/home|127\.", page + manifest)
    (command,) = re.findall("^    scrapy .*", page, re.MULTILINE)
    given = shlex.split(command)
    assert given[2:5] == ["spiderling", "-a", "seeds=seeds.txt"] and "SPIDERLING_BLOCK=mine.txt" in given
    assert "SPIDERLING_MAX_WORDS=5" in given and "SPIDERLING_CONTACT=you@example.org" in given
    assert "To have a page or host taken out, write to me@example.org;" in page


@pytest.mark.parametrize(
    ("seeds", "archive", "wanted"),
    [
        ("http://a.test/,http://b.test/", "", "spiderling -a seeds=http://a.test/,http://b.test/ "),
        ("the language models", "", "spiderling -s SPIDERLING_LANG=cs "),
        ("", "/data/x.warc.gz", "archive -a warc=ARCHIVES -s SPIDERLING_LANG=cs"),
    ],
)
def test_the_command_that_repeats_it_has_its_seeds(tmp_path, seeds, archive, wanted):
    page, manifest = card_in(crawl_with(tmp_path / "job", {"lang": "cs"}, seeds, archive))
    assert f"scrapy crawl {wanted}" in page
    assert json.loads(manifest)["crawls"][0]["archives"] == (["x.warc.gz"] if archive else [])


BY = "https://creativecommons.org/licenses/by/4.0/deed.cs"


@pytest.mark.parametrize(
    ("licences", "said"),
    [
        ([BY, "http://creativecommons.org/licenses/by/4.0/"], "cc-by-4.0"),
        ([BY, "https://creativecommons.org/publicdomain/zero/1.0/"], ["cc-by-4.0", "cc0-1.0"]),
        ([BY, "https://example.org/licences/by/4.0/"], "other"),
        ([BY, "none stated"], "other"),
        ([], "other"),
    ],
)
def test_its_head_is_yaml_with_licence_and_languages(manifest, licences, said):
    languages = {"no": {"documents": 1, "words": 1}}
    sure = {licence: 1 for licence in licences if licence != "none stated"}
    contents = {**manifest["contents"], "sure_licences": sure, "documents": len(licences), "languages": languages}
    page = readme_of({**manifest, "contents": contents}, "x.json")
    head = yaml.safe_load(page.split("---\n")[1])
    assert (head["license"], head["language"]) == (said, ["no"])
    assert "All that follows stands in x.json too." in page


@pytest.mark.parametrize(
    ("documents", "said"), [(999, "n<1K"), (1000, "1K<n<10K"), (10**7, "10M<n<100M"), (10**12, "n>1T")]
)
def test_the_library_of_the_hub_reads_its_head(manifest, documents, said):
    card = DatasetCard(readme_of({**manifest, "contents": {**manifest["contents"], "documents": documents}}, "x.json"))
    assert isinstance(card.data, DatasetCardData)
    assert (card.data.language, card.data.license, card.data.size_categories) == (["cs"], "other", [said])
    assert card.data.task_categories == ["text-generation"] and card.data.pretty_name == "Web corpus of cs"
    assert card.text.lstrip().startswith("# Web corpus of cs")


def test_a_tally_bounds_what_pages_can_name():
    tally = Tally()
    for number in range(1000):
        tally.count_document(
            {"licence": f"http://l{number}.test/", "words": "x", "crawl_date": f"2026-01-{1 + number % 28:02}"}
        )
    contents = tally.contents()
    assert len(contents["licences"]) == 501
    assert contents["licences"]["other"] == 500
    assert contents["crawl_dates"] == ["2026-01-01", "2026-01-28"]


def test_nothing_of_a_page_becomes_markup_in_the_readme(manifest):
    contents = {**manifest["contents"], "licences": {"x|<b>\n# [a](javascript:b)": 1}}
    line = next(
        line for line in readme_of({**manifest, "contents": contents}, MANIFEST).splitlines() if "javascript" in line
    )
    assert line == "| x\\|&lt;b>\ufffd# \\[a](javascript:b) | 1 |"


def test_the_digest_of_seeds_is_that_of_the_set():
    assert seeds_digest(["http://b/", "http://a/"]) == seeds_digest(["http://a/", "http://b/", "http://a/"])
    assert seeds_digest(["http://a/"]) != seeds_digest(["http://b/"])


def test_a_file_that_is_too_short_has_no_checksum(tmp_path):
    (tmp_path / "x").write_bytes(b"abc")
    assert checksum(tmp_path / "x", 2) == hashlib.sha256(b"ab").hexdigest()
    with pytest.raises(StorageError, match="2 bytes shorter"):
        checksum(tmp_path / "x", 5)
    with pytest.raises(StorageError, match="cannot be read"):
        checksum(tmp_path / "none")


# -- one card for several exports


def one_card(*arguments: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, str(ROOT / "examples/clusters/one_card.py"), *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def exported(place: Path, *sources: Path) -> dict:
    """The manifest of an export, which may be one of several."""
    ended = scrapy("export", *map(str, sources), "-o", str(place), "--where", "words > 3")
    assert ended.code == 0, ended
    return json.loads(place.with_name(f"{place.name}.json").read_text("utf-8"))


def test_exports_made_side_by_side_get_the_card_of_one(finished, tmp_path):
    segments = sorted((finished.directory / "corpus").glob("*.prevert.zst"))
    data = tmp_path / "cs" / "data"
    data.mkdir(parents=True)
    sources = [segments[:1], segments[1:], [finished.directory], [finished.directory]]
    told = [exported(data / f"{n}.parquet", *part) for n, part in enumerate(sources)]
    names = [str(data / f"{n}.parquet.json") for n in range(4)]
    ended = one_card(*names, "-o", f"{tmp_path}/cs")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == f"{tmp_path}/cs/README.md and manifest.json tell of 4 exports.\n"
    made = json.loads((tmp_path / "cs/manifest.json").read_text("utf-8"))
    whole = exported(tmp_path / "whole.parquet", *segments, finished.directory, finished.directory)
    hosts = [one["contents"].pop("hosts") for one in [*told, made, whole]]
    assert hosts[4] == sum(hosts[:4])
    for name in ("documents", "dropped", "selection", "contents", "version", "software"):
        assert made[name] == whole[name], name
    assert [file["name"] for file in made["files"]] == [f"data/{n}.parquet" for n in range(4)]
    assert [file["sha256"] for file in made["files"]] == [one["files"][0]["sha256"] for one in told]
    (crawl,) = made["crawls"]
    (one,) = told[2]["crawls"]
    assert crawl["pages"] == 2 * one["pages"] > 0 and crawl["settings"] == one["settings"]
    assert crawl["begun"] == one["begun"] and crawl["seeds"] == one["seeds"]
    page = (tmp_path / "cs/README.md").read_text("utf-8")
    assert page.count("## How it was made") == 1 and "path: data/*.parquet" in page
    joined = runpy.run_path(str(ROOT / "examples/clusters/one_card.py"))["joined"]
    masked = [one | {"personal_data": {"mode": "mask", "documents": 1, "found": {"email": 2}}} for one in told]
    assert joined(masked)["personal_data"] == {"mode": "mask", "documents": 4, "found": {"email": 8}}


def test_a_card_is_made_of_whole_exports_alone(finished, tmp_path):
    exported(tmp_path / "a.txt", finished.directory)
    (tmp_path / "b.json").write_text("{}")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/README.md").write_text("mine")
    for name, out, said in (
        ("b.json", "all", "no card is written: KeyError"),
        ("c.json", "all", "no card is written: FileNotFoundError"),
        ("a.txt.json", "mine", "README.md is no card"),
    ):
        ended = one_card(str(tmp_path / name), "-o", f"{tmp_path}/{out}")
        assert ended.returncode == 1 and said in ended.stderr, ended
    (tmp_path / "a.txt").write_text("short")
    ended = one_card(str(tmp_path / "a.txt.json"), "-o", f"{tmp_path}/all")
    assert ended.returncode == 1 and "a.txt has another size than" in ended.stderr
    assert (tmp_path / "mine/README.md").read_text() == "mine" and not (tmp_path / "all").exists()
