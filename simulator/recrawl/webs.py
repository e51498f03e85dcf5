"""The six webs that change while they are recrawled: what they are made of, and where each number comes from.

A number is followed by its source, by a name from the list below, or by "assumption": then no
published figure was found, and it is the first to be varied.  Rates of sites of one kind differ
more than kinds do, so each number here is a median or a mean over the sites of a kind.

Sources:

- Ntoulas 2004: Alexandros Ntoulas, Junghoo Cho and Christopher Olston: *What's New on the Web? The Evolution of the
  Web from a Search Engine Perspective*. WWW 2004.  154 sites in a year: 8 % new pages a week; half of the pages that
  stay never change, half of the others by less than 5 %.
- Dasgupta 2007: Anirban Dasgupta, Arpita Ghosh, Ravi Kumar, Christopher Olston, Sandeep Pandey and Andrew Tomkins:
  *The Discoverability of the Web*. WWW 2007.  26 % of the new content is found only by looking at old pages that
  never had a new link.
- Fetterly 2003: Dennis Fetterly, Mark Manasse, Marc Najork and Janet Wiener: *A Large-Scale Study of the Evolution of
  Web Pages*. WWW 2003.  151 million pages in 11 weeks: most changes are markup, .gov and .edu change least.
- Cho 2000: Junghoo Cho and Hector Garcia-Molina: *The Evolution of the Web and Implications for an Incremental
  Crawler*. VLDB 2000.  Changes of a page are a Poisson process; pages of .gov and .edu change least.
- Olston 2008: Christopher Olston and Sandeep Pandey: *Recrawl Scheduling Based on Information Longevity*. WWW 2008.
  Much of what changes on a page is teasers and dates, which do not last.
- Adar 2009: Eytan Adar, Jaime Teevan, Susan Dumais and Jonathan Elsas: *The Web Changes Everything*. WSDM 2009.
  55,000 visited pages, asked each hour: many change within the hour, mostly in place.
- NewsEdits 2022: Alexander Spangher, Xiang Ren, Jonathan May and Nanyun Peng: *NewsEdits: A News Article Revision
  Dataset*. NAACL 2022.  1.2 million articles with 4.6 million versions.
- Tsoukaladelis: Chris Tsoukaladelis and others: *The Times, They Are A-Changin': Characterizing Post-Publication
  Changes to Online News*, <https://changing-times.github.io>.  165,000 of 600,000 articles change afterwards (27 %).
- Travers 2014: Nicolas Travers, Zeinab Hmedeh, Nelly Vouzoukidou, Cedric du Mouza, Vassilis Christophides and Michel
  Scholl: *RSS feeds behavior analysis, structure and vocabulary*. International Journal of Web Information Systems,
  2014.  17 % of 8,155 feeds give 97 % of 10.8 million items; the size of items is log-normal.
- Vogels 2004: Werner Vogels on 23,681 feeds in his blog All Things Distributed, April 2004, at second hand.  41 % have
  15 items, 42 % fewer, 98 % at most 50.
- Udell 2004: Jon Udell: *RSS self-defense*, <https://jonudell.net/udell/2004-02-01-rss-self-defense.html>.  35 of more
  than 200 feeds send neither ETag nor Last-Modified.
- Bloglines 2006: <https://socialmedia.typepad.com/blog/bloglines/>.  Of the 100,000 feeds with most subscribers 30 to
  40 % have a new item each day, almost 60 % each week.
- BuiltWith 2016: in <https://exascale.info/Quantifying-Syndication-Feeds-Usage-on-the-Web/>.  33 % of the million most
  visited sites have a feed.
- HTTP Archive 2014: <https://discuss.httparchive.org/t/407>.  23 % of all resources come without ETag and
  Last-Modified; pages made on request are worse than the mean.
- Bing 2023: Fabrice Canel on lastmod in sitemaps, Bing Webmaster Blog, February 2023.  58 % of the hosts have a
  sitemap, 84 % of these lastmod, 79 % of these right; 18 % give the time when the file was made, 3 % a few dates.
"""

from __future__ import annotations

from dataclasses import dataclass

from spiderling.base.errors import BadInput

# -- what is the same for all kinds of sites

SITEMAP_SHARE = 0.58
"""Share of the sites with a sitemap (Bing 2023)."""
LASTMOD_SHARE = 0.84
"""Share of the sitemaps with lastmod (Bing 2023)."""
TRUE_LASTMOD_SHARE = 0.79
"""Share of these whose lastmod is right (Bing 2023); all others give the time when the file was made."""
SITEMAP_COVER = 0.95
"""Share of a site's pages that its sitemap lists (assumption)."""
SITEMAP_EVERY_DAYS = 1.0
"""Days from one making of a sitemap to the next (assumption)."""
VALIDATOR_SHARE = 0.45
"""Share of the sites whose pages and hubs answer 304 (HTTP Archive 2014 for all resources; pages: assumption)."""
FEED_VALIDATOR_SHARE = 0.83
"""Share of the feeds that answer 304 (Udell 2004)."""
FEED_ITEMS = ((10, 0.42), (15, 0.41), (30, 0.15), (50, 0.02))
"""Items of a feed and the share of feeds with so many (Vogels 2004)."""
TEASERS = 5
"""Newest articles that a changing box on each page shows (assumption)."""
RATE_SPREAD = 1.6
"""Standard deviation of the logarithm of sites' rates.

With it 17 % of the sites give about 75 % of the articles.  Travers 2014 has 97 %, which so few sites cannot show.
"""
HIGHEST_RATE = 60.0
"""Most articles a day of one site, so that no site is the whole web (assumption)."""
WORDS_SPREAD = 0.9
"""Standard deviation of the logarithm of an article's words (log-normal: Travers 2014; the value: assumption)."""
SITE_WORDS_SPREAD = 0.4
"""The same of the median words of the sites of a kind (assumption)."""
EDIT_WORDS_SPREAD = 0.8
"""The same of the words that an edit adds (assumption)."""
EDITS_SHAPE = 0.5
"""Shape of the gamma distribution of the edits of an article: a few get most of them (assumption)."""
STEADY_SHAPE = 0.7
"""The same of the rates of the pages that are edited for ever (assumption)."""
SECTIONS_SHAPE = 1.5
"""Parameter of the Dirichlet distribution of a site's articles over its sections (assumption)."""
FEWEST_PAGES = 5
"""Least articles that a site has when the recrawl begins (assumption)."""
MAX_PAGES = 400
"""Most articles that a site has when the recrawl begins, so that a run ends in seconds (assumption)."""


@dataclass(frozen=True, slots=True)
class SiteKind:
    """What the sites of a kind have in common."""

    articles_per_day: float
    """Median over the sites."""
    archive_days: float
    """Days before the recrawl whose articles are known already."""
    sections: int
    front_links: int
    """Newest articles on the front page."""
    section_links: int
    """Newest articles on the hub of a section."""
    feed_share: float
    """Share of the sites with a feed."""
    deep_share: float
    """Share of the new articles that neither hub nor feed lists: one old page links to each."""
    words: float
    """Median words of an article."""
    edits: float
    """Mean edits of an article."""
    edit_delay_days: float
    """Mean days from an article to each of these edits (exponential)."""
    steady_share: float
    """Share of the pages that are edited for ever."""
    steady_edits_per_day: float
    """Mean over these pages."""
    edit_words: float
    """Median words that an edit adds."""
    teaser_share: float
    """Share of the sites with a box of their newest articles on each page."""
    deaths_per_year: float
    """Pages that die, a page and year."""


NEWS = SiteKind(
    articles_per_day=8,  # assumption
    archive_days=45,  # assumption
    sections=5,  # assumption
    front_links=40,  # assumption
    section_links=25,  # assumption
    feed_share=0.80,  # assumption: more than the 33 % of all sites, BuiltWith 2016
    deep_share=0.03,  # assumption: far less than in Dasgupta 2007, as front pages are made for readers
    words=380,  # assumption
    edits=0.5,  # 27 % (Tsoukaladelis) times two edits (NewsEdits 2022)
    edit_delay_days=0.5,  # assumption: hours
    steady_share=0.01,  # assumption
    steady_edits_per_day=0.02,  # assumption
    edit_words=60,  # assumption
    teaser_share=0.70,  # assumption, after Adar 2009 and Olston 2008
    deaths_per_year=0.05,  # assumption
)
BLOGS = SiteKind(
    articles_per_day=0.12,  # Bloglines 2006: with RATE_SPREAD about half of the sites have a new article each week
    archive_days=500,  # assumption
    sections=1,  # assumption
    front_links=10,  # assumption
    section_links=10,  # assumption
    feed_share=0.85,  # assumption: software for blogs makes a feed by itself
    deep_share=0.03,  # assumption
    words=450,  # assumption
    edits=0.8,  # assumption: comments
    edit_delay_days=4,  # assumption
    steady_share=0.02,  # assumption
    steady_edits_per_day=0.01,  # assumption
    edit_words=45,  # assumption
    teaser_share=0.50,  # assumption
    deaths_per_year=0.08,  # assumption
)
FORUM = SiteKind(
    articles_per_day=2,  # assumption: threads
    archive_days=120,  # assumption
    sections=6,  # assumption
    front_links=25,  # assumption
    section_links=25,  # assumption
    feed_share=0.45,  # assumption: a little above BuiltWith 2016
    deep_share=0.02,  # assumption
    words=160,  # assumption
    edits=5,  # assumption: replies, so that most new words stand on old pages
    edit_delay_days=5,  # assumption
    steady_share=0.05,  # assumption
    steady_edits_per_day=0.10,  # assumption
    edit_words=80,  # assumption
    teaser_share=0.20,  # assumption
    deaths_per_year=0.03,  # assumption
)
DOCS = SiteKind(
    articles_per_day=0.25,  # assumption
    archive_days=500,  # assumption
    sections=4,  # assumption
    front_links=15,  # assumption
    section_links=40,  # assumption
    feed_share=0.10,  # assumption
    deep_share=0.26,  # Dasgupta 2007
    words=500,  # assumption
    edits=0.3,  # assumption
    edit_delay_days=20,  # assumption
    steady_share=0.30,  # assumption, below the half that changes at all in a year (Ntoulas 2004)
    steady_edits_per_day=0.006,  # assumption: twice a year
    edit_words=70,  # assumption
    teaser_share=0.15,  # assumption
    deaths_per_year=0.10,  # assumption
)
OFFICES = SiteKind(
    articles_per_day=0.25,  # assumption
    archive_days=300,  # assumption
    sections=4,  # assumption
    front_links=8,  # assumption
    section_links=20,  # assumption
    feed_share=0.33,  # BuiltWith 2016
    deep_share=0.15,  # assumption, below Dasgupta 2007
    words=220,  # assumption
    edits=0.3,  # assumption, as little as Fetterly 2003 and Cho 2000 say of .gov
    edit_delay_days=15,  # assumption
    steady_share=0.20,  # assumption, below Ntoulas 2004
    steady_edits_per_day=0.006,  # assumption
    edit_words=50,  # assumption
    teaser_share=0.35,  # assumption
    deaths_per_year=0.10,  # assumption
)
SHOPS = SiteKind(
    articles_per_day=0.02,  # assumption
    archive_days=1500,  # assumption
    sections=2,  # assumption
    front_links=10,  # assumption
    section_links=20,  # assumption
    feed_share=0.33,  # BuiltWith 2016
    deep_share=0.26,  # Dasgupta 2007
    words=150,  # assumption
    edits=0.05,  # assumption
    edit_delay_days=30,  # assumption
    steady_share=0.10,  # assumption, below Ntoulas 2004
    steady_edits_per_day=0.004,  # assumption
    edit_words=30,  # assumption
    teaser_share=0.40,  # assumption
    deaths_per_year=0.20,  # assumption, after the turnover in Ntoulas 2004
)

Plan = tuple[tuple[SiteKind, int], ...]
"""Kinds of sites, and how many of each a web has."""
PLANS: dict[str, Plan] = {
    "news": ((NEWS, 14),),
    "blogs": ((BLOGS, 70),),
    "forum": ((FORUM, 14),),
    "docs": ((DOCS, 24),),
    "gov": ((OFFICES, 36),),
    "mixed": ((NEWS, 3), (BLOGS, 25), (FORUM, 3), (DOCS, 6), (OFFICES, 12), (SHOPS, 25)),
}
"""The six webs; the numbers of sites are assumptions, ``mixed`` stands for the web of a country."""


def plan_of(name: str) -> Plan:
    """The plan of the web *name*; raises BadInput for any other."""
    if name not in PLANS:
        raise BadInput(f"there is no web {name!r} to be recrawled: name one of {', '.join(PLANS)}.")
    return PLANS[name]
