"""How URLs become known: links, sitemaps, archives; and requests for site files."""
