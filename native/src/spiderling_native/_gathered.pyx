"""The compiled twin of `columns_of` in base/link_batch.py: a page's links as columns.

URLs that are not canonical but for query and fragment are left to Python's `canonicalize`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.tuple cimport PyTuple_GetItem
from cpython.unicode cimport PyUnicode_DATA
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp

from spiderling_native._derived cimport OF_NAME, WORDS, Derived, section, words
from spiderling_native._text cimport Buffer, free_buffer, is_ascii_text, put, put_byte
from spiderling_native._urls cimport Parts, canonical_parts

cdef enum:
    MAX = 255  # a byte


cdef class Gathered:
    """`columns_of`, when it is called."""

    cdef Derived derived
    cdef object kind, canonicalize, clean_query, prefix_of, words_of_name
    cdef Py_ssize_t max_host
    cdef uint8_t text_block, nofollow

    def __init__(self, derived, link_batch, urls, url_features):
        if urls.PREFIXES != ("http://", "https://", "http://www.", "https://www."):
            raise ValueError("other prefixes than those that were compiled")
        self.derived, self.kind = derived, link_batch.LinkBatch
        self.canonicalize, self.clean_query, self.prefix_of = urls.canonicalize, urls.clean_query, urls.prefix_of
        self.words_of_name, self.max_host = url_features.words_of_name, link_batch.MAX_HOST
        self.text_block, self.nofollow = link_batch.TEXT_BLOCK, link_batch.NOFOLLOW

    def __call__(self, links):
        cdef list each = list(links), others = []
        cdef Py_ssize_t number = len(each), kept = 0, size, name_size, bad = 0
        cdef list columns = [PyBytes_FromStringAndSize(NULL, width * number) for width in WIDTHS]
        cdef uint16_t* of_host = <uint16_t*> data_of(columns, 0)
        cdef uint64_t* hashes = <uint64_t*> data_of(columns, 1)
        cdef uint32_t* sections = <uint32_t*> data_of(columns, 2)
        cdef uint16_t* all_words = <uint16_t*> data_of(columns, 3)
        cdef uint8_t* prefixes = <uint8_t*> data_of(columns, 4)
        cdef uint8_t* forms = <uint8_t*> data_of(columns, 5)
        cdef uint8_t* depths = <uint8_t*> data_of(columns, 6)
        cdef uint8_t* flags = <uint8_t*> data_of(columns, 7)
        cdef uint8_t* scores = <uint8_t*> data_of(columns, 8)
        cdef uint8_t* anchors = <uint8_t*> data_of(columns, 9)
        cdef dict hosts = {}, origins = {}
        cdef str url, host, origin = "", path, found
        cdef tuple of_origin = (None, 0, 0, 0)
        cdef const uint8_t* data
        cdef Parts parts
        cdef Buffer paths = Buffer(NULL, 0, 0)
        cdef uint8_t link_flags, score, anchor
        try:
            for link in each:
                url = <str?> <object> PyTuple_GetItem(link, 0)
                data, size = <const uint8_t*> PyUnicode_DATA(url), len(url)
                if is_ascii_text(url) and canonical_parts(data, size, &parts):
                    name_size = parts.path
                    if name_size != len(origin) or memcmp(PyUnicode_DATA(origin), data, name_size):
                        origin = url[:name_size]
                        of_origin = origins.get(origin) or self.of_plain(origin, parts.name, hosts, origins)
                    host = None  # it has a prefix
                    if parts.end - parts.query > 1 and (
                        found := self.clean_query(url[parts.query:parts.end])
                    ) != url[parts.query:parts.end]:
                        path = url[parts.path:parts.query] + found
                        url = origin + path
                    elif parts.end - parts.query == 1:  # the query is only its mark
                        path = url[parts.path:parts.query]
                        url = origin + path
                    else:
                        path = url[parts.path:parts.end]
                        url = url if parts.end == size else url[:parts.end]
                else:
                    target = self.canonicalize(url)
                    if target is None:
                        bad += 1
                        continue
                    url, name, host, origin, path = target
                    of_origin = origins.get(origin)
                    if of_origin is None:
                        of_origin = self.new_origin(origin, self.prefix_of(target), host, name, hosts, origins)
                self.cues(link, &link_flags, &score, &anchor)
                if of_origin[0] is None or <Py_ssize_t> of_origin[1] > self.max_host or not is_ascii_text(path):
                    if host is None:
                        host = list(hosts)[<Py_ssize_t> of_origin[1]]
                    others.append((url, host, link_flags, score, anchor))
                    continue
                if kept:
                    put_byte(&paths, c"\n")
                data, size = <const uint8_t*> PyUnicode_DATA(path), len(path)
                put(&paths, <const char*> data, size)
                hashes[kept] = self.derived.hash_of(url)
                sections[kept] = section(data, size)
                prefixes[kept], of_host[kept] = of_origin[0], of_origin[1]
                all_words[WORDS * kept], all_words[WORDS * kept + 1] = of_origin[2], of_origin[3]
                words(data, size, all_words + WORDS * kept + OF_NAME)
                self.derived.form(data, size, forms + kept, depths + kept)
                flags[kept], scores[kept], anchors[kept] = link_flags, score, anchor
                kept += 1
            text = PyBytes_FromStringAndSize(paths.data, paths.size)
        finally:
            free_buffer(&paths)
        columns = [(<bytes> column)[:width * kept] for column, width in zip(columns, WIDTHS)]
        return self.kind(tuple(hosts), text, *columns, tuple(others), bad)

    cdef tuple of_plain(self, str origin, Py_ssize_t name_at, dict hosts, dict origins):
        cdef str name = origin[name_at:]
        cdef bint has_www = name.startswith("www.") and name.count(".") > 1
        cdef int prefix = (name_at == 8) + 2 * has_www
        return self.new_origin(origin, prefix, name[4:] if has_www else name, name, hosts, origins)

    cdef tuple new_origin(self, str origin, prefix, str host, str name, dict hosts, dict origins):
        """Prefix, place of the host and words of the name."""
        cdef tuple found = (prefix, hosts.setdefault(host, len(hosts)), *self.words_of_name(name))
        origins[origin] = found
        return found

    cdef int cues(self, link, uint8_t* flags, uint8_t* score, uint8_t* anchor) except -1:
        """Flags, score and characters of the text; raises ValueError where a byte cannot hold the score."""
        cdef bint text_block = <object> PyTuple_GetItem(link, 1)
        cdef double chance = <object> PyTuple_GetItem(link, 2)
        cdef Py_ssize_t chars = <object> PyTuple_GetItem(link, 3)
        cdef bint nofollow = <object> PyTuple_GetItem(link, 4)
        cdef int said = <object> PyTuple_GetItem(link, 5)
        if not (0 <= chance <= 1 and chars >= 0 and 0 <= said <= MAX):
            raise ValueError("a byte cannot hold what is said of a link")
        flags[0] = <uint8_t> (self.text_block * text_block | self.nofollow * nofollow | said)
        score[0] = <uint8_t> (MAX * chance) or <uint8_t> (MAX * text_block)
        anchor[0] = <uint8_t> min(chars, MAX)


cdef tuple WIDTHS = (2, 8, 4, 2 * WORDS, 1, 1, 1, 1, 1, 1)  # bytes of one link in each column


cdef inline void* data_of(list columns, Py_ssize_t at):
    return PyBytes_AS_STRING(<bytes> columns[at])
