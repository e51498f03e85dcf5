"""How URLs become known: links, sitemaps, archives; and the requests for site files."""
