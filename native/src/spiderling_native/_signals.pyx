"""The compiled twins of what is counted in texts: `marks`, `count_word_kinds`, `listed` and `top_word_share` of
text/quality.py, and `long_words` of text/fingerprints.py.

A text with a capital sigma, whose lower case depends on its place, or a dotted I, whose lower case has two characters,
is left to Python.
"""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_FromKindAndData, PyUnicode_KIND, PyUnicode_READ
from cpython.unicode cimport Py_UNICODE_ISALNUM, Py_UNICODE_ISDECIMAL, Py_UNICODE_ISSPACE, Py_UNICODE_TOLOWER
from libc.stdint cimport uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memmove, memset

from spiderling_native._text cimport Buffer, free_buffer, memory, put, reserve

cdef enum:
    SPACE = 32, LINE_FEED = 10, FULL_STOP = 46, QUESTION_MARK = 63, DOTTED_I = 0x130, SIGMA = 0x3A3
    SURROGATES = 0xD800, BEHIND_SURROGATES = 0xE000, CODES = 0x110000
    MAX_WORD = 64       # characters of the longest word that is looked for in lists
    MAX_CHARS = 8000    # of the text in which the most frequent word is sought
    MAX_WORDS = 4001    # of so many characters, and one more
    SLOTS = 8192        # a power of two, twice as many
    MIN_LONG = 4      # letters of a long word
    SHORT_LINE = 12     # most long words of a short line
    BASIC = 0x10000     # characters of the basic plane
    OTHER = 1           # kind of the letters of scripts with spaces
    MAX_KINDS = 16


cdef inline bint is_special(uint32_t code) noexcept nogil:
    return code == SIGMA or code == DOTTED_I


cdef inline uint32_t read(int kind, const void* data, Py_ssize_t at) noexcept:
    """The code point at *at*, as `codepoints` gives it."""
    cdef uint32_t code = PyUnicode_READ(kind, <void*> data, at)
    return QUESTION_MARK if SURROGATES <= code < BEHIND_SURROGATES else code


cdef inline uint64_t mixed(uint64_t hash, uint32_t code) noexcept nogil:
    return (hash ^ code) * 0x9E3779B97F4A7C15u


cdef inline Py_ssize_t slot(uint64_t hash, Py_ssize_t slots) noexcept nogil:
    return <Py_ssize_t> ((hash ^ hash >> 32) & <uint64_t> (slots - 1))


cdef class Marks:
    """`marks`, when it is called."""

    cdef bytes kinds
    cdef uint8_t end, following, full_stop, digit, symbol

    def __init__(self, quality):
        cdef bytes kinds = quality.kinds_of_characters().tobytes()
        if len(kinds) != CODES:
            raise ValueError("other characters than those that were compiled")
        self.kinds, self.end, self.following = kinds, quality.END, quality.FOLLOWING
        self.full_stop, self.digit, self.symbol = quality.FULL_STOP, quality.DIGIT, quality.SYMBOL

    def __call__(self, paragraphs):
        cdef Py_ssize_t sentences = 0, digits = 0, symbols = 0, gaps = 0, chars = 0, ends, dots, at, size
        cdef const uint8_t* kinds = self.kinds
        cdef int kind
        cdef const void* data
        cdef uint32_t code
        cdef uint8_t bits
        cdef list texts = list(paragraphs)
        for text in texts:
            kind, data, size = PyUnicode_KIND(<str?> text), PyUnicode_DATA(text), len(<str> text)
            ends = dots = 0
            for at in range(size):
                code = read(kind, data, at)
                bits = kinds[code]
                if code == FULL_STOP:
                    dots += 1
                    symbols += dots % 3 == 0  # three in a row are one symbol
                else:
                    dots = 0
                if not bits:
                    continue
                gaps += code == SPACE or code == LINE_FEED
                digits += bits & self.digit != 0
                symbols += bits & self.symbol != 0
                if bits & self.full_stop:
                    ends += 1
                elif bits & self.end:  # a line feed follows a paragraph, or nothing
                    ends += at + 1 == size or kinds[read(kind, data, at + 1)] & self.following != 0
            sentences += max(1, ends)
            chars += size
        gaps += max(0, len(texts) - 1)
        return sentences, digits, symbols, gaps + 1 if chars or gaps else 0


cdef class WordKinds:
    """`count_word_kinds`, when it is called."""

    cdef bytes kinds
    cdef int number

    def __init__(self, quality):
        cdef bytes kinds = quality.word_kinds().tobytes()
        self.number = max(kinds) + 1
        if len(kinds) != CODES or self.number > MAX_KINDS:
            raise ValueError("other characters than those that were compiled")
        self.kinds = kinds

    def __call__(self, text):
        cdef Py_ssize_t[2][MAX_KINDS] counts  # of every other character, so that no count waits for the one before
        cdef Py_ssize_t at, size = len(<str?> text), runs = 0
        cdef const uint8_t* kinds = self.kinds
        cdef int kind = PyUnicode_KIND(text), place
        cdef const void* data = PyUnicode_DATA(text)
        cdef uint8_t last = 0, found
        memset(counts, 0, sizeof(counts))
        for at in range(size):
            found = kinds[read(kind, data, at)]
            counts[at & 1][found] += 1
            runs += found == OTHER and last != OTHER
            last = found
        return [runs] + [counts[0][place] + counts[1][place] for place in range(1, self.number)]


cdef struct Entry:
    uint64_t hash
    Py_ssize_t begin, size  # in the characters of all words; size 0: the place is free
    int stop, place         # whether it is a stop word; its place in the profile or -1


cdef class Table:
    """The stop words and the words of the profile of one language."""

    cdef object stoplist, profile  # a table is found by their ids, so they must live as long as it does
    cdef Buffer chars, entries
    cdef Py_ssize_t slots
    cdef bint fits

    def __init__(self, stoplist, profile):
        cdef Entry* entry
        cdef Py_ssize_t begin
        cdef uint64_t hash
        self.stoplist, self.profile, self.slots, self.fits = stoplist, profile, 64, True
        words = {word: -1 for word in stoplist} | {word: place for place, word in enumerate(profile)}
        while self.slots < 2 * len(words):
            self.slots *= 2
        for _ in range(self.slots):
            put(&self.entries, <const char*> &FREE, sizeof(Entry))
        for word, place in words.items():
            if not 0 < len(<str?> word) <= MAX_WORD:
                self.fits = self.fits and not word  # no word of a text is empty
                continue
            begin, hash = self.chars.size // 4, 0
            for code in map(ord, word):
                hash = mixed(hash, code)
                self.put_code(code)
            entry = self.find(<const uint32_t*> self.chars.data + begin, len(word), hash)
            entry.hash, entry.begin, entry.size = hash, begin, len(word)
            entry.stop, entry.place = word in stoplist, place

    def __dealloc__(self):
        free_buffer(&self.chars)
        free_buffer(&self.entries)

    cdef int put_code(self, uint32_t code) except -1:
        put(&self.chars, <const char*> &code, 4)
        return 0

    cdef Entry* find(self, const uint32_t* word, Py_ssize_t size, uint64_t hash) noexcept:
        """The entry of *word*, or the free place where it would stand; at least half of the places are free."""
        cdef Py_ssize_t at = slot(hash, self.slots)
        cdef Entry* entry
        while True:
            entry = <Entry*> self.entries.data + at
            if not entry.size or (entry.hash == hash and entry.size == size and memcmp(
                <const uint32_t*> self.chars.data + entry.begin, word, 4 * size
            ) == 0):
                return entry
            at = (at + 1) & (self.slots - 1)


cdef Entry FREE
memset(&FREE, 0, sizeof(Entry))


cdef class Listed:
    """`listed`, when it is called."""

    cdef object python, kind, lower_letters
    cdef dict tables

    def __init__(self, quality, ngrams):
        self.python, self.kind, self.lower_letters = quality.listed, quality.Listed, ngrams.letters_in_lower_case
        self.tables = {}

    cdef Table table_of(self, stoplist, profile):
        cdef tuple key = (id(stoplist), id(profile))
        if key not in self.tables:
            if len(self.tables) >= 256:  # more than there are languages
                self.tables.clear()
            self.tables[key] = Table(stoplist, profile)
        return self.tables[key]

    def __call__(self, text, stoplist, profile):
        cdef Table table = self.table_of(stoplist, profile)
        cdef Py_ssize_t number = 0, stop_words = 0, length = 0, at, size = len(<str?> text)
        cdef int kind = PyUnicode_KIND(text)
        cdef const void* data = PyUnicode_DATA(text)
        cdef list counts = [0] * len(profile)
        cdef uint32_t[MAX_WORD] word
        cdef uint32_t code
        cdef uint64_t hash = 0
        cdef Entry* entry
        lower_letters = self.lower_letters()
        cdef const uint32_t* lower = <const uint32_t*> memory(lower_letters, CODES * 4)
        if not table.fits:
            return self.python(text, stoplist, profile)
        for at in range(size + 1):
            code = read(kind, data, at) if at < size else SPACE
            if is_special(code):
                return self.python(text, stoplist, profile)
            code = lower[code]
            if code != SPACE:
                if length < MAX_WORD:
                    word[length] = code
                hash = mixed(hash, code)
                length += 1
            elif length:
                number += 1
                if length <= MAX_WORD:
                    entry = table.find(word, length, hash)
                    if entry.size:
                        stop_words += entry.stop
                        if entry.place >= 0:
                            counts[entry.place] += 1
                length = 0
                hash = 0
        return self.kind(number, stop_words, counts)


cdef struct Word:
    uint64_t hash
    int begin, size, number


cdef class TopWord:
    """`top_word_share`, when it is called."""

    cdef object python
    cdef uint32_t[MAX_CHARS] chars
    cdef Word[MAX_WORDS] words
    cdef uint16_t[SLOTS] slots  # 1 + place in `words`; 0: free

    def __init__(self, quality):
        if quality.TEXT_CHARS != MAX_CHARS:
            raise ValueError("another text than was compiled")
        self.python = quality.top_word_share

    def __call__(self, text, stoplist):
        cdef Py_ssize_t size = min(len(<str?> text), MAX_CHARS), at, begin = 0, place
        cdef int kind = PyUnicode_KIND(text), distinct = 0, number = 0, most = 0
        cdef const void* data = PyUnicode_DATA(text)
        cdef uint32_t code
        cdef uint64_t hash = 0
        cdef Word* word
        memset(self.slots, 0, sizeof(self.slots))
        for at in range(size + 1):
            code = PyUnicode_READ(kind, <void*> data, at) if at < size else SPACE
            if is_special(code):
                return self.python(text, stoplist)
            if not Py_UNICODE_ISSPACE(code):
                code = Py_UNICODE_TOLOWER(code)
                self.chars[at] = code
                hash = mixed(hash, code)
                continue
            if begin < at:
                number += 1
                place = slot(hash, SLOTS)  # at least half of the slots are free
                while self.slots[place] and not self.is_word(self.slots[place] - 1, hash, begin, at - begin):
                    place = (place + 1) & (SLOTS - 1)
                if not self.slots[place]:
                    word = &self.words[distinct]
                    word.hash, word.begin, word.size, word.number = hash, <int> begin, <int> (at - begin), 0
                    distinct += 1
                    self.slots[place] = distinct
                self.words[self.slots[place] - 1].number += 1
            begin = at + 1
            hash = 0
        for place in range(distinct):
            word = &self.words[place]
            if word.number > most and word.size > 1:
                if PyUnicode_FromKindAndData(4, self.chars + word.begin, word.size) not in stoplist:
                    most = word.number
        return most / <double> max(1, number)

    cdef bint is_word(self, int place, uint64_t hash, Py_ssize_t begin, Py_ssize_t size) noexcept:
        cdef Word* word = &self.words[place]
        return word.hash == hash and word.size == size and memcmp(
            self.chars + word.begin, self.chars + begin, 4 * size
        ) == 0


cdef inline uint32_t letter_of(uint32_t code) noexcept:
    """Its letter in lower case; 0 if it is none."""
    code = Py_UNICODE_TOLOWER(code)
    return code if Py_UNICODE_ISALNUM(code) and not Py_UNICODE_ISDECIMAL(code) else 0


cdef class LongWords:
    """`long_words`, when it is called."""

    cdef object python
    cdef uint32_t[BASIC] letters  # what `letter_of` says

    def __init__(self, fingerprints):
        if fingerprints.SHORT_WORDS != SHORT_LINE:
            raise ValueError("other lines than those that were compiled")
        self.python = fingerprints.long_words
        for code in range(BASIC):
            self.letters[<int> code] = letter_of(code)

    def __call__(self, texts, set own):
        cdef list each = list(dict.fromkeys(texts))
        cdef Py_ssize_t most = 0, used = 0, begin = 0, words = 0, at, size
        cdef Py_ssize_t[SHORT_LINE + 1] begins  # of the long words of a line, and where the last one ends
        cdef int kind
        cdef const void* data
        cdef uint32_t code, letter
        cdef Buffer found = Buffer(NULL, 0, 0)
        cdef uint32_t* out
        for text in each:
            most += len(<str?> text)
        try:
            reserve(&found, 4 * most)
            out = <uint32_t*> found.data
            for text in each:
                kind, data, size = PyUnicode_KIND(text), PyUnicode_DATA(text), len(<str> text)
                for at in range(size + 1):
                    code = read(kind, data, at) if at < size else LINE_FEED
                    letter = self.letters[code] if code < BASIC else letter_of(code)
                    if letter:
                        if is_special(code):
                            return self.python(each, own)
                        out[used] = letter
                        used += 1
                        continue
                    if used - begin < MIN_LONG:
                        used = begin
                    elif words <= SHORT_LINE:
                        begins[words] = begin
                        words += 1
                    begin = used
                    if code == LINE_FEED:
                        if words <= SHORT_LINE:
                            begins[words] = used
                            begin = used = self.without(own, out, begins, words)
                        words = 0
            return PyUnicode_FromKindAndData(4, out, used)
        finally:
            free_buffer(&found)

    cdef Py_ssize_t without(self, set own, uint32_t* out, Py_ssize_t* begins, Py_ssize_t words) except -1:
        """Take the *own* words out of a line; returns its new end."""
        cdef Py_ssize_t word, size, end = begins[0]
        for word in range(words):
            size = begins[word + 1] - begins[word]
            if PyUnicode_FromKindAndData(4, out + begins[word], size) not in own:
                memmove(out + end, out + begins[word], 4 * size)
                end += size
        return end
