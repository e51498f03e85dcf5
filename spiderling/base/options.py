"""Every ``SPIDERLING_*`` option: name, unit, default, bounds and one sentence.

``Options.from_settings(mapping)`` is the only way in.  It refuses unknown names
(naming the nearest), wrong types and values out of bounds, each in one sentence.
Lengths of time end in ``_S`` (seconds), sizes in ``_BYTES``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from spiderling.base.errors import BadInput
from spiderling.base.machine import memory_bytes, usable_cores
from spiderling.base.opt_outs import OptOutPolicy
from spiderling.base.option_values import PREFIX, check_value
from spiderling.base.option_values import option as _option
from spiderling.base.terminal import nearest
from spiderling.base.urls import MAX_SHARDS

MIN_FILTER_BYTES = 8_000_000  # least bytes of a near-duplicate filter: in fewer its layers could not grow
MAX_WORKERS = 256  # chosen: far more text workers than one main process can keep busy


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one crawl; field ``host_interval_s`` is ``SPIDERLING_HOST_INTERVAL_S``."""

    # what is built
    lang: str = _option("", "Languages of the corpus: ISO 639 codes or English names, with commas; same as -a lang=.")
    recognise: str = _option("", "Further languages to be told apart; same as -a recognise=.")

    # who we are
    contact: str = _option(
        "", "E-mail address or URL that site owners can reach you at; required for public addresses."
    )
    robots_agent: str = _option("spiderling", "Product token looked for in robots.txt and sent in the User-Agent.")
    purpose: str = _option(
        "ai-train",
        "What the corpus is for: decides which opt-outs bind (docs/opt-outs.md).",
        choices=("research", "search", "ai-train"),
    )
    optouts: str = _option(
        "", "Opt-outs treated otherwise than by default: 'signal=obey|record|ignore' with commas (docs/opt-outs.md)."
    )
    # what is fetched first
    strategy: str = _option(
        "spiderling",
        "What is fetched first and left out, such as spiderling:thrift=3 (docs/strategies.md); also -a strategy=.",
    )
    random_seed: int = _option(
        1, "Seed of what is drawn by chance in a strategy; the same crawl with the same seed draws the same.", low=0
    )

    # what may be fetched
    tlds: str = _option(
        "all",
        "Only these top-level domains, with commas: names (cz,sk), national (those of the language models), generic "
        "(com, org, net, gov, info, edu), or all; same as -a tlds=.",
    )
    prefer_tlds: str = _option(
        "national",
        "Hosts under these top-level domains, written in the same way, get three of four places; empty: none.",
    )
    follow: str = _option(
        "all",
        "Links that are followed: all, those within the hosts of the seeds (host), or none; same as -a follow=.",
        choices=("all", "host", "none"),
    )
    only_hosts: str = _option(
        "", "A file of the only hosts that may be crawled, one name a line (docs/seeds.md); same as -a hosts=."
    )
    block: str = _option("", "A file of hosts that are never asked, one name a line (docs/seeds.md).")
    max_distance: int = _option(50, "Host hops from the seeds beyond which no host is entered.", low=0)
    traps: str = _option(
        "standard",
        "How soon traps are known (docs/traps.md): standard, off, or values of your own, "
        "'standard,pages=20,copies=5,subdomains=10,mirror=10', where 0 turns one off.",
    )
    active_hosts: int = _option(
        5000, "Hosts that may be at work at once; the others with URLs wait on disk for their turn.", low=1
    )
    max_host_queue: int = _option(
        20_000, "URLs that may wait for one host; of more, those of the lowest rank end as host-full.", low=1
    )
    sitemaps: str = _option(
        "off",
        "Whether the sitemaps that robots.txt names are fetched too, for URLs of their hosts that no link leads to "
        "(docs/sitemaps.md).",
        choices=("off", "on"),
    )
    recrawl: str = _option(
        "off",
        "Whether pages are revisited for new text: on, off, or for so many days such as 30d; same as -a recrawl= "
        "(docs/recrawl.md).",
    )
    recrawl_requests: str = _option(
        ".05", "Revisits a day: a share of the URLs that are recrawled, such as .05, or a number from 1 on."
    )
    allow_networks: str = _option(
        "", "Networks in CIDR form, separated by commas, that may be fetched although private or loopback."
    )
    hosts: str = _option(
        "", "Fixed addresses of host names, 'glob=address[:port]' separated by commas, instead of DNS."
    )
    ports: str = _option(
        "80,443,8000,8008,8080,8081,8443,8888", "Ports that URLs may name, separated by commas; 'all': any."
    )

    # names
    nameservers: str = _option("", "DNS servers, 'address[:port]' separated by commas; empty: the system's.")
    # politeness
    host_interval_s: float = _option(
        5.0, "Seconds between the starts of two requests to one host; a visit for its files is one.", low=0, high=86400
    )
    ip_interval_s: float = _option(
        0.1, "Seconds between the starts of two requests to one IP address.", low=0, high=3600
    )
    delay_factor: float = _option(
        5.0,
        "After each request a host is left alone for this many times the duration of the answer, unless its interval "
        "is longer; 0: off.",
        low=0,
        high=100,
    )
    retries: int = _option(2, "Further attempts after a failure that may pass.", low=0, high=20)
    offline_wait_s: float = _option(86400.0, "Seconds without a network after which the crawl stops.", low=0)
    refused_robots: str = _option(
        "leave",
        "What it means when robots.txt is answered with 401, 402, 403, 451 or a challenge: leave (nothing of the host "
        "is fetched, docs/opt-outs.md), or allow (there are no rules: RFC 9309, 2.3.1.3).",
        choices=("leave", "allow"),
    )
    # limits of one response
    max_body_bytes: int = _option(5_000_000, "Larger bodies are refused or cut off (too-big).", low=10_000)
    documents: str = _option(
        "pdf,docx,odt,epub",
        "Kinds of documents fetched besides HTML, with commas: pdf, docx, odt, epub; empty: none.",
    )
    timeout_s: float = _option(60.0, "Seconds for a whole request.", low=0.1)
    # archives: pages from WARC files instead of the web
    archive_files: int = _option(2, "Files that are read at the same time; of URLs one is.", low=1, high=64)
    archive_robots: str = _option(
        "obey",
        "Whether a robots.txt in an archive counts for the pages that come after it (docs/archive.md).",
        choices=("obey", "ignore"),
    )
    archive_urls: str = _option(
        "",
        "A file of the only URLs that are taken, one a line, * at the end for all that begin so; same as -a urls=.",
    )

    # yield
    yield_profile: str = _option(
        "normal",
        "Threshold t(n) = f*(log10 n - 1) below which a host is retired: off, permissive (f=.002), normal (.005), "
        "paper (.01), or a number for f.",
    )
    min_active_hosts: int = _option(
        0,
        "When fewer hosts have URLs to be fetched, the best retired ones that gave text go on, and are read to "
        "their end.  The strategy spiderling does so when nothing else is left.",
        low=0,
    )
    # budgets: the crawl stops, or a host is left alone, and goes on with a larger one
    max_words: int = _option(
        0,
        "Words kept at which the crawl stops, with the document that reaches them; same as -a words=; 0: no limit.",
        low=0,
    )
    max_documents: int = _option(0, "Documents kept at which the crawl stops; 0: no limit.", low=0)
    max_pages: int = _option(0, "Judged responses at which the crawl stops; 0: no limit.", low=0)
    max_downloaded_bytes: int = _option(0, "Bytes of bodies at which the crawl stops; 0: no limit.", low=0)
    max_time_s: float = _option(0.0, "Running time over all sessions at which the crawl stops; 0: no limit.", low=0)
    marginal_bytes: int = _option(
        0,
        "The crawl stops when the last bytes, as many as this, gave less than a thousandth of text; 0: never.",
        low=0,
    )
    coverage_lists: str = _option(
        "",
        "Files of pages that were found in other ways, with commas, by which it is estimated once an hour how much of "
        "the text on the web the crawl has (docs/coverage.md); empty: none.",
    )
    coverage_share: float = _option(
        0.0,
        "The crawl stops when it has at least this share of the words (of the pages, where no list says the words), "
        "such as .8; same as -a coverage=; 0: never.",
        low=0,
        high=1,
    )
    max_host_documents: int = _option(0, "Documents kept of a host at which it is left alone; 0: no limit.", low=0)
    max_host_bytes: int = _option(0, "Bytes downloaded from a host at which it is left alone; 0: no limit.", low=0)

    # text
    models: str = _option("", "Directories with language models, separated by ':', searched before the bundled ones.")
    workers: int = _option(
        0,
        "Text worker processes; 0: one less than the cores that may be used, or than a shard's part of them, at "
        "least 1; for archives as many.",
        low=0,
        high=MAX_WORKERS,
    )
    compiled: str = _option(
        "auto",
        "Whether text workers run compiled steps, with the same results in less time (docs/performance.md): where "
        "they are there (auto), never (no), or only so (required).",
        choices=("auto", "no", "required"),
    )
    boilerplate: str = _option(
        "learned",
        "How boilerplate is told from text: by a fitted model, by jusText's rules in our pass, or by that package.",
        choices=("learned", "justext", "justext-stock"),
    )
    boilerplate_model: str = _option("", "File of weights made by models/block_model.py; empty: the bundled ones.")
    justext_preset: str = _option(
        "balanced",
        "How strict jusText is: strict has the package's values.",
        choices=("strict", "balanced", "permissive"),
    )
    paragraph_kinds: str = _option(
        "text,heading,comment",
        "Kinds of paragraphs that are kept, with commas: text, heading, comment, teaser, code, cell, notice.",
    )
    markup: str = _option(
        "",
        "Mark-up of pages that is kept, with commas: breaks (<br>), lists and tables (their number, and that of the "
        "item), notes (marks of footnotes), ruby (readings).",
    )
    min_known_share: float = _option(
        0.6,
        "How usual the text's character 4-grams and short words are for its language, where 1 is the language's own "
        "text: below this it is another, unknown one.",
        low=0,
        high=1,
    )
    quality: str = _option(
        "standard",
        "Which documents are bad-quality: those outside of the ranges of a preset, standard or off, in which ranges of "
        "your own may follow, 'standard,text_chars=500..,sentence_words=5..100,symbol_share=..0.3' (docs/text.md).",
    )
    # corpus and state
    dedup: str = _option(
        "near",
        "Duplicates while crawling: near (paragraphs most of which was kept before are dropped), mark (they stay, "
        'with dup="1"), exact (only whole pages and texts), off.',
        choices=("near", "mark", "exact", "off"),
    )
    dedup_bytes: int = _option(
        0,
        "Most memory of the near-duplicate filter, which begins small, 8000000 or more; 0: a quarter of all memory, or "
        "a shard's part of that.",
        low=0,
    )
    seen: str = _option(
        "", "Earlier corpora (prevertical files or directories, with commas) whose text is not new; same as -a seen=."
    )
    durability: str = _option(
        "full",
        "What a power cut leaves: all that was acknowledged (full), or a whole crawl without its last seconds (normal, "
        "an fsync less for each checkpoint).",
        choices=("full", "normal"),
    )
    surplus: str = _option(
        "refuse",
        "What is done with more text unknown to the state than a kill or power cut leaves (docs/durability.md).",
        choices=("refuse", "aside"),
    )
    trail: str = _option(
        "full",
        "What is kept on disk of each URL, to be asked afterwards: how it ended and where it was found (full), only "
        "how it ended (ends), or nothing (off).",
        choices=("full", "ends", "off"),
    )
    links: str = _option(
        "off", "Whether links/ gets what came of each page and where it leads (docs/links.md).", choices=("off", "on")
    )
    warc: str = _option(
        "off", "Whether warc/ gets every exchange, in gzip (on) or zstd (docs/warc.md).", choices=("off", "on", "zstd")
    )
    min_free_bytes: int = _option(
        200_000_000, "Free bytes of the crawl's disk below which it pauses until there is room; 0: never.", low=0
    )
    page: str = _option(
        "",
        "Where the live page is served (docs/live.md): 127.0.0.1:8580, then further host names by which "
        "it is reached, with commas; empty: nowhere.",
    )

    snapshots: str = _option(
        "",
        "A directory that other machines reach too, where the crawl keeps a snapshot of its state and segments, from "
        "which scrapy takeover goes on if this machine is lost (docs/shards.md); empty: none.",
    )

    # one crawl of several processes
    cluster: str = _option(
        "",
        "Redis over which the shards of one crawl exchange what they find: redis://host/0, rediss://host/0 or "
        "unix:///path; empty: the crawl is one process.",
    )
    shards: int = _option(
        1,
        "Number of shards; scrapy reshard raises it once the crawl has begun; auto: as many as the cores call for.  "
        "Without SPIDERLING_CLUSTER one scrapy crawl starts all of them (docs/shards.md).",
        low=1,
        high=MAX_SHARDS,
    )
    cluster_key_file: str = _option(
        "",
        "File with the key by which the shards know each other, mode 600; required unless Redis is a Unix socket of "
        "yours.",
    )
    takeover_s: float = _option(
        0.0,
        "Seconds without a sign of life after which a process that has no shard takes one over from its snapshot; 0: "
        "none does by itself.",
        low=0,
    )

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Options:
        """Read the ``SPIDERLING_*`` keys of *settings*.

        Raises BadInput for an unknown name, a wrong type or a value out of bounds.
        """
        known = {PREFIX + spec.name.upper(): spec for spec in fields(cls)}
        values = {}
        for name in sorted(str(key) for key in settings if str(key).startswith(PREFIX)):
            spec = known.get(name)
            if spec is None:
                meant = "".join(f" (did you mean {near}?)" for near in nearest(name, known))
                raise BadInput(f"there is no option {name}{meant}; docs/options.md lists all.")
            value = settings[name]
            if value is not None:
                values[spec.name] = check_value(name, spec, value)
        return cls(**values)

    def on_record(self) -> dict[str, Any]:
        """The options that state, log and reports may hold: all but `cluster`, in which a password may stand."""
        return {name: value for name, value in asdict(self).items() if name != "cluster"}

    def user_agent(self) -> str:
        return f"{self.robots_agent} (+{self.contact})" if self.contact else self.robots_agent

    def text_workers(self, from_archives: bool = False) -> int:
        """Number of text workers, for a crawl of the web or of archives."""
        cores = usable_cores()
        return self.workers or (cores if from_archives else max(1, cores // self.shards_here() - 1))

    def shards_here(self) -> int:
        """Number of shards on this machine: all, if they meet at a Unix socket; else one for all that is known."""
        return self.shards if self.cluster.startswith("unix:") else 1

    def knows_shingles(self) -> bool:
        """Whether near-duplicates are looked for."""
        return self.dedup in ("near", "mark")

    def filter_bytes(self) -> int:
        """Most memory of the near-duplicate filter."""
        return max(MIN_FILTER_BYTES, self.dedup_bytes or memory_bytes() // 4 // self.shards_here())

    def policy(self) -> OptOutPolicy:
        """How opt-outs are treated; raises BadInput if `optouts` cannot be read."""
        return OptOutPolicy.parse(self.purpose, self.optouts)
