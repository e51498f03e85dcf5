"""Strategies: in which order a crawl fetches what it has found, and what it leaves out.

The Frontier asks a Strategy for the rank of each link of a page, or whether to drop it; for the rank of a host; and
whether to retire a host.  ``parse("spiderling:thrift=3")`` makes one; the fields of its dataclass are the parameters
that a user may set.  docs/strategies.md says how to write another.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields, is_dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import xxhash

from spiderling.base.errors import BadInput
from spiderling.base.link_batch import batch_of
from spiderling.base.option_values import parse_tlds
from spiderling.base.reasons import Reason
from spiderling.base.terminal import entries_of, hint
from spiderling.frontier.hosts import LAST_RANK, SEED_RANK
from spiderling.frontier.strategy import (
    USUAL_RANK,
    BatchRanker,
    FoundLink,
    LinkingPage,
    NewLinks,
    Ranker,
    Strategy,
    chance,
)
from spiderling.frontier.worth import BADNESS_STEP, WEIGHTS, Worth

if TYPE_CHECKING:
    from spiderling.base.options import Options
    from spiderling.base.outcome import Outcome
    from spiderling.base.urls import CanonicalUrl
    from spiderling.frontier.hosts import Host, YieldAccount
    from spiderling.frontier.strategy import CrawlView


_HIGHEST = 10**12  # what a parameter may be at most if it has no bound of its own; chosen: more pages than any crawl


def parameter(default: float, most: float) -> Any:
    """A field that is *most* at most, which `parse` checks."""
    return field(default=default, metadata={"most": most})


@dataclass
class Bfs(Strategy):
    """Breadth first; nothing is left out."""


@dataclass
class Yield(Strategy):
    """Breadth first, and hosts of low yield rate are retired (Suchomel & Pomikálek 2012)."""

    retires = True


@dataclass
class Heidix(Strategy):
    """Ranks by quality of the linking page and block, host yield and the URL's language (Schäfer et al. 2014, 5).

    No host is retired.
    """

    power: float = parameter(1.0, most=100)
    """A rank is drawn with a probability proportional to 1 / (rank + 1) to this power."""
    weights: ClassVar[Mapping[str, float]] = {
        name: WEIGHTS[name] for name in ("host", "page-inside", "page-outside", "block", "url")
    }
    """Weights of the estimators, in log-odds."""
    ranks_hosts = True

    def begin(self, crawl: CrawlView, options: Options) -> None:
        tlds = parse_tlds(options.prefer_tlds, "PREFER_TLDS") or ()
        self.worth = Worth(self.weights, crawl, options.lang.split(","), tlds)

    def ranker(self, page: LinkingPage) -> Ranker:
        return lambda link: self.worth.ranks(page, NewLinks.of(link))[0]

    def batch_ranker(self, page: LinkingPage) -> BatchRanker:
        return lambda links: self.worth.ranks(page, links)

    def what_is_read(self, page: LinkingPage) -> LinkingPage:
        badness = BADNESS_STEP * round(page.badness / BADNESS_STEP) if page.reason is Reason.KEPT else 0.0
        return page._replace(rank=SEED_RANK, relevant=False, language="", badness=badness)

    def host_rank(self, host_id: int, account: YieldAccount, head: int = USUAL_RANK) -> int:
        return self.worth.host_rank(host_id, account, head)

    def learn(self, page: LinkingPage, target: CanonicalUrl, outcome: Outcome) -> None:
        self.worth.learn(page, target.path, outcome.body_bytes, outcome.kept_bytes)

    def state(self) -> dict[str, str]:
        return self.worth.state()

    def restore(self, meta: Mapping[str, str]) -> None:
        self.worth.restore(meta)


@dataclass
class Spiderling(Heidix):
    """Ranks by all estimators, asks hosts of little yield more seldom, and retires those of low yield rate."""

    power: float = parameter(20.0, most=100)
    thrift: float = parameter(1.0, most=100)
    weights = WEIGHTS
    retires = True
    reopens = True

    def is_foreign(self, host: Host) -> bool:
        return self.worth.is_foreign(host.id)


@dataclass
class ByHead(Strategy):
    """A host's rank is that of its best queued URL: one order over the whole crawl."""

    ranks_hosts = True

    def host_rank(self, host_id: int, account: YieldAccount, head: int = USUAL_RANK) -> int:
        return head


@dataclass
class RandomWalk(ByHead):
    """Random walks, as many at a time as requests (ClaraX, Schäfer et al. 2014, 5), with weights against their bias.

    From a page, the walk goes on to one of its links, drawn among all of them.  The walk ends with the probability
    *jump*, and when the link is known already.  Then another walk begins at a link that was not drawn before
    (back-tracking).  A walk comes to a page the more often the more links the page has (Henzinger et al. 2000), so a
    page has the weight 1 / links.  The walks of that paper also count links to the page and come back to pages; here
    each page is fetched once.
    """

    jump: float = parameter(0.1, most=1)

    def begin(self, crawl: CrawlView, options: Options) -> None:
        self._seed = options.random_seed
        self._random = chance(self._seed)
        self._links = 0

    def learn(self, page: LinkingPage, target: CanonicalUrl, outcome: Outcome) -> None:
        self._random = chance(
            xxhash.xxh3_64_intdigest(target.url.encode(), self._seed)
        )  # no restart draws anything again
        self._links = batch_of(outcome.links).number

    def ranker(self, page: LinkingPage) -> Ranker:
        left = self._links
        self._links = 0
        goes_on = self._random() >= self.jump

        def rank(link: FoundLink) -> int:
            nonlocal left, goes_on
            is_drawn = goes_on and self._random() * left < 1
            left -= 1
            goes_on = goes_on and not is_drawn
            return 1 if is_drawn else LAST_RANK

        return rank

    def weight(self, links: int) -> float:
        return 1 / max(1, links)


STRATEGIES: dict[str, type[Strategy]] = {
    "spiderling": Spiderling,
    "yield": Yield,
    "bfs": Bfs,
    "heidix": Heidix,
    "random-walk": RandomWalk,
}
"""By the name that ``-a strategy=`` takes."""


def parse(text: str) -> Strategy:
    """The strategy of a name with parameters, such as ``spiderling:thrift=3``; raises BadInput for anything else.

    A name with dots is the import path of a dataclass, as in ``mine.strategies.ShortPathsFirst``.
    """
    name, _, rest = text.strip().partition(":")
    cls = _import_strategy(name) if "." in name else STRATEGIES.get(name)
    if cls is None:
        raise BadInput(f"SPIDERLING_STRATEGY is {name!r}; {hint(name, STRATEGIES)}")
    parameters = {spec.name: spec for spec in fields(cls)}  # type: ignore[arg-type]  # each is a dataclass
    values: dict[str, int | float] = {}
    for part in entries_of(rest):
        key, _, value = part.partition("=")
        if key not in parameters:
            known = f"it takes {', '.join(parameters)}" if parameters else "it takes none"
            raise BadInput(f"SPIDERLING_STRATEGY is {text!r}; {name} has no parameter {key!r}, {known}.")
        values[key] = _number(text, parameters[key], value)
    return cls(**values)


def _import_strategy(path: str) -> type[Strategy]:
    """The strategy at an import path."""
    try:
        found = resolve_name(path)
    except (ImportError, AttributeError, ValueError) as error:
        raise BadInput(f"SPIDERLING_STRATEGY is {path!r}, which cannot be imported: {error}.") from error
    if not (isinstance(found, type) and issubclass(found, Strategy) and is_dataclass(found)):
        raise BadInput(f"SPIDERLING_STRATEGY is {path!r}, which is no dataclass that inherits from Strategy.")
    return found


def _number(text: str, parameter: Field[Any], value: str) -> int | float:
    kind: type[int] | type[float] = type(parameter.default)  # type: ignore[assignment]  # each has a default
    least = int(kind is int)
    most = parameter.metadata.get("most")
    try:
        number: int | float = kind(value)
    except ValueError:
        number = -1
    if not least <= number <= (_HIGHEST if most is None else most):
        up_to = "" if most is None else f" to {most}"
        what = f"a whole number from {least}{up_to}" if kind is int else "a number, 0 or more"
        raise BadInput(f"SPIDERLING_STRATEGY is {text!r}; {parameter.name} must be {what}.")
    return number
