"""How URLs become known: links, redirects, sitemaps, site files, archives."""
