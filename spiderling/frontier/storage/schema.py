"""The tables and views of the state's file, and the numbers by which the file is recognised."""

from __future__ import annotations

SCHEMA_VERSION = 9
MIGRATIONS: dict[int, str] = {}
"""Schema -> the SQL that makes the next one of it; of the schemas before the first release none can be migrated."""
APPLICATION_ID = 0x59D37
"""The application id in SQLite's header of our files; the command `file` shows it."""

SCHEMA = """
CREATE TABLE meta(key TEXT PRIMARY KEY, checksum INTEGER NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE count(key TEXT PRIMARY KEY, value INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE host(id INTEGER PRIMARY KEY, name TEXT NOT NULL, state TEXT NOT NULL, distance INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, waiting INTEGER NOT NULL, parked INTEGER NOT NULL, due REAL NOT NULL,
    crawl_delay_s REAL NOT NULL, slowdown REAL NOT NULL, failures INTEGER NOT NULL, exempt INTEGER NOT NULL,
    address TEXT NOT NULL, positions TEXT NOT NULL, first BLOB NOT NULL, transit BLOB,
    checksum INTEGER NOT NULL, queue_checksum INTEGER NOT NULL);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, urls INTEGER NOT NULL, checksum INTEGER NOT NULL,
    lines BLOB NOT NULL);
CREATE TABLE log(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, added BLOB NOT NULL,
    popped TEXT NOT NULL);
CREATE TABLE seen(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, keys BLOB NOT NULL);
CREATE TABLE digest(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, keys BLOB NOT NULL);
CREATE TABLE robots(origin TEXT PRIMARY KEY, status TEXT NOT NULL, fetched REAL NOT NULL, expires REAL NOT NULL,
    failures INTEGER NOT NULL, checksum INTEGER NOT NULL, body BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE consent(origin TEXT NOT NULL, file TEXT NOT NULL, answer TEXT NOT NULL, digest TEXT NOT NULL,
    first REAL NOT NULL, last REAL NOT NULL, says TEXT NOT NULL, checksum INTEGER NOT NULL,
    PRIMARY KEY(origin, file, answer, digest)) WITHOUT ROWID;
CREATE TABLE file(name TEXT PRIMARY KEY, length_bytes INTEGER NOT NULL, entries INTEGER NOT NULL,
    kind TEXT NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIEW segment AS SELECT name, length_bytes, entries AS documents FROM file WHERE kind = 'corpus';
CREATE TABLE event(time REAL NOT NULL, what TEXT NOT NULL, checksum INTEGER NOT NULL);
CREATE TABLE written(name TEXT PRIMARY KEY, rows INTEGER NOT NULL, checksum INTEGER NOT NULL) WITHOUT ROWID;
CREATE VIEW hosts AS SELECT name, state, distance, pages, documents, words,
    round(downloaded_bytes / 1e6, 3) AS down_mb, round(kept_bytes / 1e6, 3) AS kept_mb,
    round(kept_bytes * 1.0 / max(downloaded_bytes, 1), 4) AS yield_rate, waiting, parked, address,
    datetime(due, 'unixepoch') AS due FROM host ORDER BY kept_bytes DESC, name;
CREATE VIEW consents AS SELECT origin, file, answer, says, datetime(first, 'unixepoch') AS first,
    datetime(last, 'unixepoch') AS last, digest FROM consent ORDER BY origin, file, consent.first;

CREATE TABLE ended(batch INTEGER PRIMARY KEY, time REAL NOT NULL, segment TEXT NOT NULL,
    offset_bytes INTEGER NOT NULL, checksum INTEGER NOT NULL, keys BLOB NOT NULL, ends BLOB NOT NULL);
CREATE TABLE found(batch INTEGER PRIMARY KEY, time REAL NOT NULL, checksum INTEGER NOT NULL,
    keys BLOB NOT NULL, pages BLOB NOT NULL);
CREATE TABLE purged(time REAL NOT NULL, host INTEGER NOT NULL, reason TEXT NOT NULL,
    urls INTEGER NOT NULL, checksum INTEGER NOT NULL);

CREATE TABLE history(tick INTEGER PRIMARY KEY, time REAL NOT NULL, time_s INTEGER NOT NULL,
    pages INTEGER NOT NULL, documents INTEGER NOT NULL, words INTEGER NOT NULL, downloaded_bytes INTEGER NOT NULL,
    kept_bytes INTEGER NOT NULL, discovered INTEGER NOT NULL, waiting INTEGER NOT NULL, hosts INTEGER NOT NULL,
    at_work INTEGER NOT NULL, retired INTEGER NOT NULL, checksum INTEGER NOT NULL);

CREATE TABLE outbox(id INTEGER PRIMARY KEY, time REAL NOT NULL, links INTEGER NOT NULL, checksum INTEGER NOT NULL,
    message BLOB NOT NULL);
CREATE TABLE peer(shard INTEGER PRIMARY KEY, sent INTEGER NOT NULL, epoch INTEGER NOT NULL,
    received INTEGER NOT NULL, checksum INTEGER NOT NULL);

CREATE TABLE length(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, lengths BLOB NOT NULL);

CREATE TABLE validator(batch INTEGER PRIMARY KEY, time REAL NOT NULL, checksum INTEGER NOT NULL,
    keys BLOB NOT NULL, validators BLOB NOT NULL);
CREATE TABLE watched(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE rate(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE paragraph(id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, content BLOB NOT NULL);

CREATE TABLE edge(batch INTEGER PRIMARY KEY, checksum INTEGER NOT NULL, edges BLOB NOT NULL);

CREATE VIEW ends AS SELECT substr(key, 5) AS reason, value AS urls,
    round(value * 1.0 / (SELECT max(value, 1) FROM count WHERE key = 'discovered'), 4) AS share
    FROM count WHERE key LIKE 'end/%' AND value ORDER BY value DESC;
CREATE VIEW waiting AS SELECT state, count(*) AS hosts, sum(waiting) AS urls, max(waiting) AS most,
    datetime(min(due), 'unixepoch') AS first_due FROM host WHERE waiting GROUP BY state ORDER BY urls DESC;
CREATE VIEW yield AS
    SELECT CASE WHEN at IS NULL THEN 'all' ELSE 'distance ' || at END AS hosts_at, count(*) AS hosts,
    sum(pages) AS pages, sum(documents) AS documents, sum(words) AS words,
    round(sum(downloaded_bytes) / 1e6, 3) AS down_mb, round(sum(kept_bytes) / 1e6, 3) AS kept_mb,
    round(sum(kept_bytes) * 1.0 / max(sum(downloaded_bytes), 1), 4) AS yield_rate,
    round(sum(documents) * 1.0 / max(sum(pages), 1), 4) AS yield_ratio
    FROM (SELECT NULL AS at, * FROM host UNION ALL SELECT distance AS at, * FROM host)
    GROUP BY at ORDER BY at;
"""
"""Creates all tables and views of a new file.

outbox, peer: the messages that wait for other shards to take them, and how far the exchange with each shard has come.
length: lengths of queues that are newer than the rows of their hosts (queue_lengths.py).  validator: by what pages are
asked again; watched: what is watched (watching/pages.py).  rate: how often something new stands there, by host
(watching/policy.py).  paragraph: digests of the paragraphs of pages, by URL key.  edge: which host links to which, as
far as that may shorten a distance (hosts/host_graph.py).  The views are for people
who read the file with sqlite3 or datasette; they may read while the crawl runs.
"""
