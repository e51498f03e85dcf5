"""What is known of a watched page after a look at it."""

from __future__ import annotations

from dataclasses import replace

from spiderling.base.outcome import Outcome
from spiderling.base.reasons import Reason
from spiderling.frontier.watching.groups import Standing, WatchedPage
from spiderling.frontier.watching.policy import HUB, PAGE
from spiderling.frontier.watching.validators import Validators

GONE_DAYS = 7.0
"""Days between two answers of 404 after which a page counts as gone (chosen: servers are mended within a week)."""
_HUB_FOUND, _HUB_FROM, _HUB_MOST = 2, 2, 6
"""What a look that found a link adds to a page's score, the score from which it is a hub, and the most.  Chosen: a look
that found none takes 1 off, so a page is no hub by one link of a teaser for long."""
HUB_CANDIDATE = 3
"""Score of a page that is not in the corpus: it is given up when it has fallen to 0."""
OPT_OUTS = frozenset(
    {
        *(Reason.NOINDEX, Reason.OPTED_OUT, Reason.SITE_OPTED_OUT, Reason.ROBOTS_FORBIDDEN),
        Reason.UNAVAILABLE_FOR_LEGAL_REASONS,
    }
)
"""Ways for a look to be over that say: this page may not be used any more."""


def is_answer(page: WatchedPage, outcome: Outcome) -> bool:
    """Whether *outcome* says what stands on *page* now; a 304 says so only if it was asked for."""
    is_text = 200 <= outcome.status < 300 or (outcome.status == 304 and page.validators.are_sent)
    return is_text and outcome.reason not in OPT_OUTS


def unmade(page: WatchedPage, reason: Reason, days: float) -> WatchedPage:
    """*page* when a look at it was not made for *reason*."""
    after = replace(page, last=days)
    return replace(after, state=Standing.OPTED_OUT, since=days) if reason in OPT_OUTS else after


def after_look(page: WatchedPage, outcome: Outcome, found: int, days: float) -> WatchedPage:
    """*page* when a look at it was answered by *outcome* and *found* so many new links."""
    if outcome.status in (404, 410):
        return _missed(replace(page, last=days), outcome.status == 410, days)
    if not is_answer(page, outcome):
        return unmade(page, outcome.reason, days)
    after = replace(page, last=days, state=Standing.LIVE, since=0.0)
    if outcome.status != 304:
        after.validators = Validators(outcome.text_key, outcome.modified, outcome.etag)
    if outcome.reason is Reason.KEPT:
        after.version = min(255, after.version + 1)
    if after.kind in (PAGE, HUB):
        score = min(_HUB_MOST, after.hub_score + _HUB_FOUND) if found else max(0, after.hub_score - 1)
        after.hub_score = score
        after.kind = HUB if score >= _HUB_FROM or not after.version else PAGE
        if not (score or after.version):
            after.state = Standing.FRUITLESS
            after.since = days
    return after


def _missed(page: WatchedPage, is_gone: bool, days: float) -> WatchedPage:
    since = page.since if page.state is Standing.MISSED else days
    is_gone = is_gone or days - since >= GONE_DAYS
    return replace(page, state=Standing.GONE if is_gone else Standing.MISSED, since=since)
