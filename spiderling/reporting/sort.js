// Every heading of a table becomes a button that sorts by its column: numbers the largest first, empty cells last.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const label = head.textContent;
    if (!label) return;
    const isNumber = head.classList.contains("n");
    const key = (row) => {
      const text = row.cells[column].textContent;
      return isNumber ? parseFloat(text.replaceAll(",", "")) : text;
    };
    const isEmpty = (value) => value === "" || Number.isNaN(value);
    const button = document.createElement("button");
    button.textContent = label;
    button.addEventListener("click", () => {
      const falls = head.ariaSort ? head.ariaSort === "ascending" : isNumber;
      const sign = falls ? -1 : 1;
      const rows = [...body.rows].map((row) => [key(row), row]);
      rows.sort(([a], [b]) =>
        isEmpty(a) || isEmpty(b) ? isEmpty(a) - isEmpty(b) : sign * (isNumber ? a - b : a.localeCompare(b)));
      body.append(...rows.map(([, row]) => row));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", falls ? "descending" : "ascending");
    });
    head.replaceChildren(button);
  });
}
