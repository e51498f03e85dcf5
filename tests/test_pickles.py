"""A worker that a page has taken over can send no code, and neither can Redis."""

from __future__ import annotations

import os
import pickle
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import document
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scrapy import Request, Spider

from spiderling import languages
from spiderling.base.link_batch import gathered
from spiderling.base.urls import canonicalize, owner_of
from spiderling.cluster.content import Seal, pack, section, unpack
from spiderling.cluster.exchange import SENT_BARE, ShardExchange
from spiderling.engine.requests import Payloads
from spiderling.frontier.admission import PICKLED, Mention
from spiderling.frontier.storage.protocol import Changes
from spiderling.frontier.storage.sqlite import SqliteStore
from spiderling.text import TextOptions, process
from spiderling.text.page import Page, read_page
from spiderling.workers.pool import Task, WorkerConfig, WorkerCrash, WorkerPool

OPTIONS = TextOptions(("cs",), with_shingles=True)


class Call:
    """Pickled as a call of *function*."""

    def __init__(self, function, *arguments) -> None:
        self._call = function, arguments

    def __reduce__(self):
        return self._call


def hostile(config):
    """The work of a worker that was taken over: every second answer calls something when it is unpickled."""
    text_page = Page("html", title="fine")

    def work(task: Task) -> object:
        return Call(os.mkdir, task.body.decode()) if task.body else text_page

    return work


def test_calls_are_refused_and_not_made(tmp_path):
    for value in (Call(os.mkdir, str(tmp_path / "made")), [Call(eval, "1+1")], Call(os.system, "true"), Path):
        with pytest.raises(pickle.UnpicklingError, match="is no part of a page"):
            read_page(pickle.dumps(value, 5))
    assert not (tmp_path / "made").exists()


def test_pages_and_plain_values_come_through():
    models = languages.load(("cs", "en"), "")
    body = document("a", "/b").encode()
    options = OPTIONS
    page = process(body, url="http://a.test/", http_charset=None, models=models, options=options)
    again = read_page(pickle.dumps(page, 5))
    assert again.shingles.hashes.tolist() == page.shingles.hashes.tolist() != []
    empty = process(b"", url="http://a.test/", http_charset=None, models=models, options=options)
    assert read_page(pickle.dumps(empty, 5)).shingles.hashes.tolist() == []
    assert (again.paragraphs, again.links, again.quality) == (page.paragraphs, [], page.quality)
    assert again.batch == page.batch and again.batch.number
    bare = process(
        body, url="http://a.test/", http_charset=None, models=models, options=replace(options, gathers_links=False)
    )
    for _ in range(2):  # read, and once more
        bare = read_page(pickle.dumps(bare, 5))
        assert bare.batch.number == 0 and bare.links == []
    assert read_page(pickle.dumps([("a", 1, None), [2.5]], 5)) == [("a", 1, None), [2.5]]


@pytest.mark.slow
async def test_a_hostile_worker_is_replaced_and_costs_its_page(tmp_path):
    config = WorkerConfig(TextOptions(("cs",)), ("cs",), process="test_pickles:hostile")
    pool = WorkerPool(1, config, 20.0)
    await pool.start()
    try:
        with pytest.raises(WorkerCrash):
            await pool.process(Task(str(tmp_path / "made").encode(), "http://a.test/"))
        page = await pool.process(Task(b"", "http://a.test/2"))
    finally:
        await pool.stop()
    assert page.title == "fine"
    assert not (tmp_path / "made").exists()


def pickled(value: bytes) -> bytes:
    """How *value* stands inside a pickle of protocol 3, which has no frames."""
    return pickle.dumps(value, 3)[2:-3]


def test_paragraphs_that_a_hostile_worker_rendered_cannot_end_their_document(monkeypatch):
    models = languages.load(("cs", "en"), "")
    page = process(document("a").encode(), url="http://a.test/", http_charset=None, models=models, options=OPTIONS)
    good, expected = pickle.dumps(page, 3), page.kept_elements()
    assert expected.count(b"<p") > 1 and good.count(pickled(expected)) == 1
    page = read_page(good)
    with monkeypatch.context() as patched:
        patched.setattr("spiderling.text.page.read_page", pytest.fail)  # nothing is unpacked for it
        assert page.kept_elements() == expected
    for made in (b"</doc>\n<doc>\n", expected + b"</doc>\n", expected[:-1], b"<p>\n\xff\n</p>\n", expected + b"x\n"):
        assert read_page(good.replace(pickled(expected), pickled(made))).kept_elements() == expected
    again = read_page(good)
    again.paragraphs = [paragraph._replace(kept=False) for paragraph in again.paragraphs]
    assert again.kept_elements() == b""


class OwnSpider(Spider):
    name = "own"

    def parse_more(self, response, **kwargs):
        """A callback."""


SPIDER = OwnSpider()


@pytest.fixture
def payloads() -> Payloads:
    return Payloads(SimpleNamespace(spider=SPIDER))


def restored(payloads: Payloads, payload: bytes) -> Request:
    return payloads.restore(SimpleNamespace(payload=payload, url="http://a.test/"))


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers() | st.binary(), inner)
    | st.lists(inner).map(tuple),
    max_leaves=8,
)  # fmt: skip


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(st.dictionaries(st.text().map("own {}".format), PLAIN))
def test_a_request_with_plain_values_needs_no_pickle(payloads: Payloads, meta: dict) -> None:
    request = Request(
        "http://a.test/", SPIDER.parse_more, "POST", {"X-A": ["b", "\xe9"]}, b"\xff\x00", {"c": "d"},
        meta, cb_kwargs=meta, flags=["f"], priority=3,
    )  # fmt: skip
    payload = payloads.of(request)
    assert payload.startswith(b"{") and not payload.startswith(PICKLED)
    again = restored(payloads, payload)
    for name in ("url", "callback", "method", "headers", "body", "cookies", "cb_kwargs", "flags", "priority"):
        assert getattr(again, name) == getattr(request, name)
    assert again.meta == meta


def test_any_other_request_is_pickled_for_its_own_shard_alone(payloads: Payloads) -> None:
    """To another shard it goes as its URL: a pickle in Redis could run code of whoever writes there."""
    path = Path("/x")
    payload = payloads.of(Request("http://a.test/", meta={"path": path}))
    assert payload.startswith(PICKLED) and restored(payloads, payload).meta == {"path": path}
    exchange = ShardExchange(0, 2, Seal(bytes(16), b""), SqliteStore())
    name = next(f"host{number}.cz" for number in range(20) if owner_of(f"host{number}.cz", 2) == 1)
    exchange.give(Mention(canonicalize(f"http://{name}/"), 1, 2, 0, payload, b"salt"))
    (row,) = exchange.drain(Changes(), 1000.0).outbox
    [sent] = unpack(row.message).mentions
    assert not sent.payload.startswith(PICKLED) and restored(payloads, sent.payload).meta == {}
    assert exchange.counts[SENT_BARE] == 1


def test_no_pickle_is_taken_from_another_shard(tmp_path: Path, payloads: Payloads) -> None:
    """Whoever can write to a Redis without a key can seal a message too."""
    call = pickle.dumps(Call(os.mkdir, str(tmp_path / "made")), 5)
    for data in (call, pickle.dumps({}, 2)):
        with pytest.raises(ValueError, match="a pickle"):
            unpack(pack([section([], gathered([]), [Mention(canonicalize("http://a.test/"), 1, 2, 0, data)])]))
    old = pickle.dumps(Call(os.mkdir, str(tmp_path / "made")), 0)
    for data in (old, b'{"dict": [["_class", "os.system"]]}', b"{}", b"[]"):
        with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
            restored(payloads, data)
    assert not (tmp_path / "made").exists()
