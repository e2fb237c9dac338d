// Sorts the table of steps by a click on a column, shows which ops of the graph a step runs, and saves the run that is in the page. The page reads well without.
"use strict";
const table = document.getElementById("steps");
const entries = [...table.tBodies];

// What the first row of an entry has in a column: a number where there is one, else the text.
function valueOf(entry, column, isNumber) {
  const cell = entry.rows[0].cells[column];
  if (!isNumber) return cell.dataset.v ?? cell.textContent;
  return cell.dataset.v === undefined ? null : Number(cell.dataset.v);
}

// Entries without a value stay last. A third click brings back the order of execution.
function sorted(column, isNumber, direction) {
  if (direction === "none") return entries;
  const sign = direction === "ascending" ? 1 : -1;
  return [...entries].sort((a, b) => {
    const [x, y] = [valueOf(a, column, isNumber), valueOf(b, column, isNumber)];
    if (x === null || y === null) return (x === null) - (y === null);
    return sign * (isNumber ? x - y : x.localeCompare(y));
  });
}

function sortBy(head, isNumber) {
  const order = isNumber ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
  const next = order[(order.indexOf(head.getAttribute("aria-sort") ?? "none") + 1) % order.length];
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  if (next !== "none") head.setAttribute("aria-sort", next);
  for (const entry of sorted(head.cellIndex, isNumber, next)) table.insertBefore(entry, table.tFoot);
}

for (const head of table.tHead.rows[0].cells) {
  if (!head.dataset.sort) continue;
  const button = document.createElement("button");
  button.append(...head.childNodes);
  head.append(button);
  button.addEventListener("click", () => sortBy(head, head.dataset.sort === "number"));
}

// Within the drawing only: the page stays where it is.
function reveal(box) {
  const drawing = box.closest(".drawing");
  const [inner, outer] = [box.getBoundingClientRect(), drawing.getBoundingClientRect()];
  const isShown = inner.top >= outer.top && inner.bottom <= outer.bottom && inner.left >= outer.left &&
    inner.right <= outer.right;
  if (isShown) return;
  drawing.scrollBy(inner.left + inner.width / 2 - outer.left - outer.width / 2,
    inner.top + inner.height / 2 - outer.top - outer.height / 2);
}

// Whoever points at one sees the others.
function tie(element, others) {
  const light = (isLit) => {
    for (const each of [element, ...others]) each.classList.toggle("lit", isLit);
  };
  for (const event of ["mouseenter", "focusin"]) element.addEventListener(event, () => light(true));
  for (const event of ["mouseleave", "focusout"]) element.addEventListener(event, () => light(false));
}

const rowsOfBoxes = new Map();
for (const row of table.rows) {
  const boxes = (row.dataset.ops ?? "").split(" ").map((id) => document.getElementById(id)).filter((box) => box);
  if (boxes.length === 0) continue;
  for (const box of boxes) rowsOfBoxes.set(box, [...(rowsOfBoxes.get(box) ?? []), row]);
  tie(row, boxes);
  for (const event of ["mouseenter", "focusin"]) row.addEventListener(event, () => reveal(boxes[0]));
}
for (const [box, rows] of rowsOfBoxes) tie(box, rows);

function saveRun() {
  const text = document.getElementById("fuseline-run").textContent;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], {type: "application/json"}));
  link.download = document.querySelector("h1").textContent.replace(/[^\w.-]+/g, "_") + ".fuserun";
  link.click();
  URL.revokeObjectURL(link.href);
}

const save = document.createElement("button");
save.className = "save";
save.textContent = "Save the run as a file";
save.addEventListener("click", saveRun);
document.querySelector("footer").append(save);
