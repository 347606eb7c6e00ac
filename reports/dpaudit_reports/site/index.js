
"use strict";
const table = document.querySelector("table");
const rows = [...table.tBodies[0].rows].map((row) => ({
  row,
  text: row.textContent.toLowerCase(),
  ranks: row.dataset.ranks.split(" ").map(Number),
}));
const titles = [...table.tHead.rows[0].cells];
const [words, verdict, order, shown] = ["words", "verdict", "order", "shown"].map((id) => document.getElementById(id));
const other = { ascending: "descending", descending: "ascending" };

function filter() {
  const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const { row, text } of rows) {
    const chosen = !verdict.value || row.dataset.verdict === verdict.value;
    row.hidden = !(chosen && wanted.every((word) => text.includes(word)));
  }
  const left = rows.filter(({ row }) => !row.hidden).length;
  shown.textContent = `${left} of ${rows.length} audits`;
}

function sort(column, direction) {
  const sign = direction === titles[column].dataset.first ? 1 : -1;
  const compare = (a, b) => (a < 0) - (b < 0) || sign * (a - b);
  const sorted = [...rows].sort((a, b) => compare(a.ranks[column], b.ranks[column]));
  table.tBodies[0].append(...sorted.map(({ row }) => row));
  titles.forEach((title, i) => (i === column ? title.setAttribute("aria-sort", direction) : title.removeAttribute("aria-sort")));
  order.value = sign > 0 ? String(column) : "";
}

titles.forEach((title, column) => {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = title.textContent;
  button.addEventListener("click", () => sort(column, other[title.getAttribute("aria-sort")] || title.dataset.first));
  title.replaceChildren(button);
});
words.addEventListener("input", filter);
verdict.addEventListener("change", filter);
order.addEventListener("change", () => sort(Number(order.value), titles[Number(order.value)].dataset.first));
document.querySelector(".tools").hidden = false;
sort(0, titles[0].dataset.first);
filter();
