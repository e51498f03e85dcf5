"""Crawls and recrawls of webs without a network: a research instrument beside the package (docs/simulator.md).

simulate.py      the command
comparison.py    strategies on webs, in as many processes as there are cores, and what is printed and written
replay.py        one crawl: the frontier of a real one, on a virtual clock
clairvoyants.py  strategies that know the web
rivals.py        strategies of papers that the package does not have
pages.py         a web in arrays; generated.py and linking.py draw one, graphs.py makes one of what a crawl recorded
measures.py      the papers' measures of a crawl
recrawl/        policies that recrawl webs which change
"""
