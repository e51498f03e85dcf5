"""How a running crawl tells of itself; the live page is imported with its option alone.

server.py         which path gives what to whom, connections, and the status as server-sent events
metrics.py        /metrics for Prometheus

The page itself is in reporting/.
"""
