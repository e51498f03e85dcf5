"""The same command goes on after a power cut, with the default settings."""

from __future__ import annotations

import json
import pickle
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import NETWORK, Crawl, serving
from needs import needs
from recorded_disk import Recording, after_power_cut, recorded, write_files

from benchmarks.faults import SEEDS, SETTINGS, differences, documents_of, linked_web
from spiderling.base.options import Options
from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.corpus.segments import read_documents
from spiderling.crawl.crawl import Crawl as OpenCrawl

BATCHES = 6
pytestmark = needs("SQLite's VFS")


def opened(directory: Path, durability: str) -> OpenCrawl:
    options = Options(lang="cs", allow_networks=NETWORK, durability=durability)
    return OpenCrawl(options, directory, pytest.fail)


async def record_batches(directory: Path, durability: str) -> Recording:
    """Batches of documents, several to a segment; the notes count those that were acknowledged."""
    rng = random.Random(0)
    with recorded(directory) as recording:
        crawl = opened(directory, durability)
        recording.note(0)
        for number in range(1, BATCHES + 1):
            text = b"<doc>\n<p>\n%d %x\n</p>\n</doc>\n" % (number, rng.getrandbits(4000))
            outcome = Outcome(None, f"http://a.test/{number}", Reason.KEPT, document=text)
            crawl.checkpoint.add_outcome(outcome)
            await crawl.checkpoint.flush()
            recording.note(number)
        await crawl.close()
    return recording


def numbers_in(paths: Iterator[Path]) -> list[int]:
    return [int(document.paragraphs[0].split()[0]) for path in sorted(paths) for document in read_documents(path)]


@pytest.mark.parametrize("cuts", [12, pytest.param(150, marks=pytest.mark.slow)])
@pytest.mark.parametrize("durability", [Options().durability, "normal"])
async def test_a_crawl_opens_after_any_power_cut_and_has_each_text_once(tmp_path, cuts, durability):
    """By default all that was acknowledged is there; ``normal`` sets aside what its state does not know any more."""
    recording = await record_batches(tmp_path / "recorded", durability)
    rng, undone = random.Random(1), 0
    for cut in range(cuts):
        steps = rng.randrange(len(recording.steps) + 1)
        job = write_files(after_power_cut(recording, steps, rng), tmp_path / "job")
        before = b"".join(path.read_bytes() for path in sorted(job.glob("corpus/*.zst")))
        acknowledged = max(recording.noted_before(steps), default=0)
        await opened(job, durability).close()
        there, aside = numbers_in(job.glob("corpus/*.zst")), numbers_in(job.glob("corpus/aside/*.zst"))
        assert there == [*range(1, len(there) + 1)], (cut, steps)
        assert len(there) >= acknowledged or durability == "normal", (cut, steps)
        assert {*there, *aside} >= {*range(1, acknowledged + 1)}, (cut, steps)
        undone += len(there) < acknowledged
        kept = sum(path.stat().st_size for path in job.glob("corpus/**/*.zst*"))
        assert kept == len(before) or not aside, "nothing that can be read is deleted"
        shutil.rmtree(job)
    assert bool(undone) == (durability == "normal")


@pytest.fixture(scope="module")
def server():
    with serving(linked_web()) as running:
        yield running


@pytest.mark.slow
def test_whole_crawls_go_on_after_power_cuts_by_the_same_command_and_lose_nothing(server, tmp_path):
    """The disk has written any part of what was not synced, of the state as of the segments."""
    settings = {name: value for name, value in SETTINGS.items() if name != "EXTENSIONS"}
    reference = Crawl(tmp_path / "reference", server, **settings)
    extensions = json.dumps({"tests.recorded_disk.RecordDisk": 1})
    assert reference.run(SEEDS, EXTENSIONS=extensions).code == 0
    recording = pickle.loads((tmp_path / "reference.recording").read_bytes())
    assert len(recording.notes) > 10
    whole = {name: (reference.directory / name).read_bytes() for _, rows in recording.notes for name, _ in rows}
    rng = random.Random(2)
    for cut in range(12):
        steps = rng.randrange(len(recording.steps))
        crawl = Crawl(tmp_path / f"cut-{cut}", server, **settings)
        write_files(after_power_cut(recording, steps, rng), crawl.directory)
        acknowledged = dict(row for rows in recording.noted_before(steps) for row in rows)
        result = crawl.run(SEEDS)
        assert result.code == 0 and "is finished" in result.output, (cut, steps, result.output[-2000:])
        for name, length in acknowledged.items():
            assert (crawl.directory / name).read_bytes()[:length] == whole[name][:length], (cut, steps, name)
        assert documents_of(crawl) == documents_of(reference), (cut, steps)
        assert differences(crawl, reference) == [], (cut, steps)
