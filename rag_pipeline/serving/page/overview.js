// What is indexed: the choices of the filters, and what an empty page shows.

import { sources } from "./api.js";
import { button, byId, el } from "./dom.js";
import { ago, kindName, number } from "./text.js";

const FILTERS = { source_type: kindName, repository: String };

let known = [];

/** Ask what there is; `choose` is told which row of the table somebody wants to search in. */
export async function loadSources(choose) {
  known = (await sources()).sources ?? [];
  fillFilters();
  const newest = [...known].sort((a, b) => String(a.repository).localeCompare(b.repository) || b.documents - a.documents);
  const hint = el("p", {}, "Type to search; ", el("kbd", {}, "Enter"), " asks for an answer with its sources.");
  byId("overview").replaceChildren(...(newest.length ? [hint, table(newest, choose)] : [nothingYet()]));
}

/** Make both filters offer what there is, and what is chosen already, whether it is there or not. */
export function fillFilters(chosen = null) {
  for (const [name, words] of Object.entries(FILTERS)) {
    const select = byId(name);
    const value = chosen?.[name] ?? select.value;
    const values = new Set(known.map((source) => source[name]).filter(Boolean));
    if (value) values.add(value);
    const sorted = [...values].sort((a, b) => words(a).localeCompare(words(b)));
    select.replaceChildren(select.options[0], ...sorted.map((one) => el("option", { value: one }, words(one))));
    select.value = value;
  }
}

function table(rows, choose) {
  const line = (source) => {
    const { repository, source_type, documents, newest_change } = source;
    const name = `${repository} ${kindName(source_type)}`;
    const here = () => choose({ repository, source_type });
    return el(
      "tr", {}, el("th", { scope: "row" }, button(repository || "—", here, { class: "quiet", "aria-label": `Search in ${name}` })),
      el("td", {}, kindName(source_type)), el("td", { class: "n" }, number(documents)),
      el("td", {}, newest_change ? el("time", { datetime: newest_change, title: newest_change }, ago(newest_change)) : "—"),
    );
  };
  const head = [["Repository", ""], ["Kind", ""], ["Documents", "n"], ["Newest change", ""]];
  return el(
    "table", {}, el("caption", {}, "What is in the index"),
    el("thead", {}, el("tr", {}, head.map(([name, look]) => el("th", { scope: "col", class: look || null }, name)))),
    el("tbody", {}, rows.map(line)),
  );
}

const nothingYet = () =>
  el(
    "div", { class: "notice" }, el("p", {}, el("strong", {}, "The index holds nothing yet that you may see.")),
    el("p", { class: "soft" }, "Where it is new, ", el("code", {}, "rag-pipeline up"), " or a run in Dagster fills it."),
  );
