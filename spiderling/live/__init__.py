"""How a running crawl tells of itself; live page and alerts are imported with their options alone.

access.py         who may see and do what: token, cookie, Host, Origin, headers
server.py         which path gives what, connections, and the status as server-sent events
metrics.py        /metrics for Prometheus
summary.py        start and progress in words, and the summary at the end
alerts.py         what somebody should be told, and how it is delivered
page.html, page.css, page.js
"""
