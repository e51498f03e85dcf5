"""How URLs become known: links, sitemaps, site files, archives."""
