"""What the looks at one page have come to (docs/watch.md)."""

from __future__ import annotations

from datetime import UTC, datetime

from spiderling.frontier.watching.pages import MAX_PARTS, Group, Standing, group_id
from spiderling.jobdir.inspection import Inspection, Story
from spiderling.jobdir.sound_reading import noted

_SINCE = {
    Standing.MISSED: "not found since {}",
    Standing.GONE: "gone since {}",
    Standing.OPTED_OUT: "opted out since {}",
    Standing.FRUITLESS: "not looked at any more since {}, for it gave no new link",
}


def looks_at(part: Inspection, story: Story) -> str:
    """When the page of *story* was looked at last, and what is known since; empty if it is not watched."""
    began = noted(part.meta, "watch", dict[str, float]()).get("began")
    if began is None or story.host is None:
        return ""
    host = story.host["id"]
    bounds = group_id(host, 0), group_id(host, MAX_PARTS - 1)
    for row in part.rows("SELECT content FROM watched WHERE id BETWEEN ? AND ?", *bounds):
        for page in Group.unpacked(row["content"]).pages():
            if page.key != story.key:
                continue
            last, since = (
                f"{datetime.fromtimestamp(began + days * part.options.watch_day_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
                for days in (page.last, page.since)
            )
            said = ["none so far" if page.last == page.found_at else f"the last at {last}"]
            said += [f"version {page.version}"] if page.version > 1 else []
            said += [_SINCE[page.state].format(since)] if page.state in _SINCE else []
            return ", ".join(said)
    return ""
