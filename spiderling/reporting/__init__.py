"""``scrapy report``: a crawl's state as one HTML page.

material.py    what is read of the state, once
link_graph.py  what links/ tells of pages and the links between them
tables.py      tables of it, by the papers' measures
advice.py      what to do next, in plain words
charts.py      curves and points, as Vega-Lite
report.py      the page of ``scrapy report``
page.py        any such tables and charts as one page that needs no network
"""
