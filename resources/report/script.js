// Sorts the table of steps by a click on a column, and saves the run that is in the page. The page reads well without.
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
