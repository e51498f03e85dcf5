"""The live page of a running crawl (SPIDERLING_PAGE); nothing of it is imported without that option.

access.py         who may see and do what: token, cookie, Host, Origin, headers
server.py         which path gives what; what is read of the state is read in a thread
stream.py         the status as server-sent events, for a bounded number of browsers
controls.py       pause, block, reopen and budgets, written into control.yaml
metrics.py        /metrics for Prometheus
page.html, page.css, page.js
"""
