"""Keys of a request's meta; apart, since the list of spiders needs them and nothing that takes long to import."""

FETCH = "spiderling_fetch"  # the frontier's Fetch that a request carries out
DISTANCE = "spiderling_distance"  # of a seed: its distance
SOURCE = "spiderling_source"  # of a request that a callback made: the URL of the page that it was found on
ERRBACK = "spiderling_errback"  # the request's own errback; ours stands in its place
PAGES = "spiderling_pages"  # how many PageItems the request's response has given so far
CAPTURED = "spiderling_captured"
"""Of pages from archives, and of answers that were held: the time of capture, in seconds since 1970."""
ANSWER = "spiderling_answer"  # the answer that was held for the request, which is not sent
