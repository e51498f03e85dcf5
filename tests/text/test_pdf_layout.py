"""The order in which a PDF is read, whatever order it is drawn in: columns, tables, notes, heads and feet, hyphens."""

from __future__ import annotations

import random
import textwrap
from itertools import chain, zip_longest

import made_documents as made
import pytest
from needs import needs

from spiderling.workers.converter import CONVERTERS

pytestmark = needs("pypdfium2")

STORY = (
    "when the cat came home it was already dark and everybody was asleep, only the old dog was still lying by the door "
    "and waited for her because he had nothing else to do and nobody had told him that the night was cold and long "
    "and that the road over the hills to the little town by the river would be under snow until the spring comes back"
)
OTHER = (
    "far away from there an engineer counted the lamps of a bridge and wrote their number into a small book, which he "
    "had carried in his coat for many years without ever showing it to the people with whom he worked every single day "
    "so that they took him for a poet or a spy and spoke with lower voices as soon as he came into the room to eat"
)
THIRD = (
    "in the third part of this report we look at apples, pears and plums, at how they were planted in the gardens of "
    "the village and at what became of them when the old people left and the houses were sold to others who came only "
    "for some weeks of the summer and let the grass grow as high as the windows of the kitchen and of the hall below"
)


def blocks(*pages) -> list[str]:
    return [block.text for block in CONVERTERS["pdf"](made.pdf(pages)).blocks]


def column(text: str, x: float, y: float = 700, chars: int = 40, size: float = 10, pitch: float = 12):
    return [(x, y - pitch * number, size, line) for number, line in enumerate(textwrap.wrap(text, chars))]


def by_rows(*columns):
    return list(filter(None, chain.from_iterable(zip_longest(*columns))))


TWO = column(STORY, 50), column(OTHER, 310)
THREE = column(STORY, 40, chars=28), column(OTHER, 220, chars=28), column(THIRD, 400, chars=28)
HEADING = (50, 730, 16, "A heading over all of the columns of the page")
BELOW = column(THIRD, 50, 570, chars=95)
DRAWN = {
    "row by row": (by_rows(*TWO), [STORY, OTHER]),
    "column by column": ([*TWO[0], *TWO[1]], [STORY, OTHER]),
    "the right one first": ([*TWO[1], *TWO[0]], [STORY, OTHER]),
    "from below": (by_rows(*TWO)[::-1], [STORY, OTHER]),
    "in no order": (random.Random(3).sample(by_rows(*TWO), 2 * len(TWO[0])), [STORY, OTHER]),
    "lines at other heights": (by_rows(TWO[0], column(OTHER, 310, 695)), [STORY, OTHER]),
    "a short column": (by_rows(TWO[0], column(OTHER[:114], 310)), [STORY, OTHER[:114]]),
    "three": (by_rows(*THREE), [STORY, OTHER, THIRD]),
    "a heading above, text below": ([HEADING, *by_rows(*TWO), *BELOW], [HEADING[3], STORY, OTHER, THIRD]),
    "two bands": (
        [*by_rows(*TWO), (50, 570, 10, THIRD[:95]), *by_rows(column(THIRD, 50, 540), column(STORY, 310, 540))],
        [STORY, OTHER, THIRD[:95], THIRD, STORY],
    ),
    "the right one begins lower": (by_rows(TWO[0], column(OTHER, 310, 676)), [STORY, OTHER]),
    "a heading on the left below": (
        [*by_rows(*TWO), (50, 580, 10, "What came of it"), *column(THIRD, 50, 562, chars=95)],
        [STORY, OTHER, "What came of it", THIRD],
    ),
    "two text boxes": ([*column(STORY, 50)[:2], *column(OTHER, 310)[:2]], [STORY[:77], OTHER[:77]]),
}  # fmt: skip


@pytest.mark.parametrize(("lines", "texts"), DRAWN.values(), ids=DRAWN)
def test_columns(lines, texts):
    assert " ".join(blocks(lines)) == " ".join(texts)


def test_a_word_is_divided_by_the_end_of_a_column_s_line_alone():
    left = ["the garden was full of hya-", "cinths and of the old pear", "trees that nobody had planted."]
    right = ["she was a well-", "known professor of the uni-", "versity, and lived at Aix-", "En-Provence by then."]
    lines = by_rows(made.set_lines(left, x=50), made.set_lines(right, x=250))
    assert blocks(lines) == [
        "the garden was full of hyacinths and of the old pear trees that nobody had planted.",
        "she was a wellknown professor of the university, and lived at Aix-En-Provence by then.",
    ]


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (["the Czecho-", "-slovak state, its coal and its steel"], "the Czecho-slovak state, its coal and its steel"),
        (["they are so\xad", "cial animals of the open"], "they are social animals of the open"),
        (["the re-", "Ed and the e-mail of the"], "the re-Ed and the e-mail of the"),
        (["from 1918 -", "- 1938 it was a republic"], "from 1918 - - 1938 it was a republic"),
    ],
)
def test_hyphens_at_ends_of_lines(lines, text):
    assert blocks(made.set_lines(lines)) == [text]


TABLE = [["Name", "Town", "Trade"], ["Jane Miller", "Winchester", "teacher"], ["John Smith", "Birmingham", "carpenter"],
         ["Mary Brown", "Nottingham", "engineer"], ["Peter Jones", "Canterbury", "gardener"]]  # fmt: skip
OFFICES = [["Ministry of Agriculture", "Market Street 12"], ["Ministry of Education", "Long Garden Street 4"],
           ["Ministry of Transport", "River Road 181"], ["Ministry of the Interior", "West Square 7"]]  # fmt: skip


@pytest.mark.parametrize("table", [TABLE, OFFICES, [["1,204", "3,391", "5,114"]] * 4])
def test_a_table_is_read_row_by_row(table):
    cells = [(72 + 170 * place, 600 - 14 * number, 10, cell)
             for number, row in enumerate(table) for place, cell in enumerate(row)]  # fmt: skip
    above, below = column(STORY, 72, chars=95), column(OTHER, 72, 500, chars=95)
    assert blocks([*above, *cells, *below]) == [STORY, *map(" ".join, table), OTHER]


# -- heads, feet, numbers and notes

PARTS = textwrap.wrap(f"{STORY} {OTHER} {THIRD}", 105)
FURNITURE = {
    "a number drawn first": lambda n: [(300, 30, 10, f"{n + 12}")],
    "a number on the left above": lambda n: [(60, 760, 9, f"- {n + 1} -")],
    "Roman numbers": lambda n: [(300, 30, 10, ["iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"][n % 9])],
    "heads of odd and even pages": lambda n: [(72, 760, 9, f"{n} Journal of Cats" if n % 2 else f"A. Miller {n}")],
    "head and foot of two rows": lambda n: [
        (72, 770, 9, "Journal of Cats"), (72, 758, 9, f"Volume {n}"), (72, 30, 9, f"Page {n} of 5")
    ],
}  # fmt: skip


@pytest.mark.parametrize("furniture", FURNITURE)
def test_heads_feet_and_numbers_are_no_text(furniture):
    pages = [[*FURNITURE[furniture](n), *column(text, 72, chars=70, size=11)] for n, text in enumerate(PARTS)]
    assert blocks(*pages) == [" ".join(PARTS)]


def test_a_number_is_not_glued_to_the_text():
    assert blocks([(300, 30, 10, "12"), *column(STORY, 72, chars=95)]) == [STORY]
    assert blocks([(300, 30, 10, "12")]) == ["12"]


def test_notes_come_behind_the_paragraph_that_goes_on_over_them():
    note = "* The cat is a black one, and she belongs to the family of the miller."
    pages = [
        [*column(STORY, 72, chars=95, size=11), (72, 500, 8, note)],
        [*column(f"and {OTHER}.", 72, chars=95, size=11), *column("Here the next one begins.", 72, 600)],
    ]
    assert blocks(*pages) == [f"{STORY} and {OTHER}.", note, "Here the next one begins."]


def test_a_paragraph_goes_on_over_the_page_before_a_capital():
    pages = [column(f"{STORY} for the family of", 72, chars=60), column(f"Miller {OTHER}.", 72, chars=60)]
    pages[0] = pages[0][:-1] if len(pages[0][-1][3]) < 50 else pages[0]
    text = " ".join(line[3] for line in pages[0])
    assert blocks(*pages) == [f"{text} Miller {OTHER}."]


def test_an_initial_belongs_to_its_word():
    text = "hen the cat came home it was dark and everybody was asleep, only the dog"
    first, second = text.split(" everybody ")
    second = f"everybody {second}"
    lines = [(72, 676, 40, "W"), (112, 694, 11, first), (112, 680, 11, second), (72, 666, 11, "was still there.")]
    assert blocks(lines) == [f"W{text} was still there."]


def test_signs_without_characters_beside_the_words_do_not_count():
    assert blocks([(50, 700 - 14 * number, 10, f"\x19 {line}") for number, line in enumerate(PARTS)])


TURNED = "the first line of it and the second line and the third"


def test_text_from_below_to_above_stays_as_it_is_drawn():
    """Rotated pages and vertical scripts have no rows from side to side."""
    body = made.pdf([made.set_lines(["the first line of it", "and the second line", "and the third"])])
    turned = body.replace(b" Td (", b" Td 0 1 -1 0 300 100 Tm ( ")
    assert [block.text for block in CONVERTERS["pdf"](turned).blocks] == [TURNED]
