// What the page does: the view (question and filters) is in the address, and everything shown follows from it.

import { onMove, read, write } from "./address.js";
import { hideAnswer, recallAnswer, startAnswer, stopAnswer } from "./answer.js";
import { search } from "./api.js";
import { button, byId, el, say } from "./dom.js";
import { startKeyboard } from "./keyboard.js";
import { askForKeyAfter, startDialogs, trouble } from "./notices.js";
import { fillFilters, loadSources } from "./overview.js";
import { openers, showHits } from "./results.js";
import { number, plural } from "./text.js";

const PAUSE_MS = 180; // after a letter, before it is searched for
const SLOW_MS = 300; // before it is said that something is under way
const SAY_MS = 900; // so that those who listen hear the last count, not each one
const K = 10;
const MOST = 50;

const box = byId("box");
const FILTERS = ["source_type", "repository"];

let k = K;
let searching = null;
let pause;
let searched = ""; // what the list shows, so that the same is not asked again

const view = () => ({ q: box.value.trim(), ...Object.fromEntries(FILTERS.map((name) => [name, byId(name).value])), isAsked: false });

function show({ q, ...filters }) {
  if (q !== box.value.trim()) box.value = q;
  fillFilters(filters);
  byId("everywhere").hidden = !FILTERS.some((name) => filters[name]);
  byId("overview").hidden = q !== "";
  document.title = q ? `${q} · rag-pipeline` : "Search · rag-pipeline";
}

/** Search for what the view says, and show it unless something else is wanted by then. */
async function find(wanted, { again = false } = {}) {
  clearTimeout(pause);
  const asked = JSON.stringify([wanted.q, ...FILTERS.map((name) => wanted[name]), k]);
  if (asked === searched && !again) return;
  searching?.abort();
  searched = asked;
  if (!wanted.q) return showNothing("");
  const control = (searching = new AbortController());
  const slow = setTimeout(() => (byId("found").textContent = "Searching …"), SLOW_MS);
  try {
    const found = await search(wanted, k, control.signal);
    if (!control.signal.aborted) showFound(found, wanted);
  } catch (error) {
    if (control.signal.aborted) return;
    searched = "";
    showNothing("");
    showNotice(trouble(error, () => find(view(), { again: true }), { isPatient: true }));
    if (error.status === undefined) throw error;
    askForKeyAfter(error);
  } finally {
    clearTimeout(slow);
  }
}

function showNothing(words) {
  showHits({ hits: [] });
  byId("found").textContent = words;
  showNotice();
  byId("more").hidden = true;
}

/** Who has pressed a button of the notice before goes on in the box. */
function showNotice(...nodes) {
  const wasHere = byId("notice").contains(document.activeElement);
  byId("notice").replaceChildren(...nodes.filter(Boolean));
  if (wasHere) box.focus();
}

function showFound(found, wanted) {
  const hits = found.hits ?? [];
  const count = plural(hits.length, "result");
  showHits({ ...found, hits });
  byId("found").textContent = hits.length ? `${count} in ${number(found.milliseconds)} ms` : "";
  const guesses = Object.entries(found.corrected ?? {}).map(([word, words]) => `${words.join(" or ")} instead of ${word}`);
  showNotice(
    found.degraded && el("p", { class: "notice" }, `Note: ${found.degraded}`),
    guesses.length > 0 && el("p", { class: "notice" }, `No document holds some of your words. Looked for ${guesses.join("; ")}.`),
    !hits.length && nothingFound(wanted),
  );
  byId("more").hidden = hits.length < k || k >= MOST;
  // An answer says itself how it goes, and must not be talked over by results that come after it.
  if (byId("answer").hidden) say(hits.length ? count : "Nothing found", SAY_MS);
}

function nothingFound(wanted) {
  const isFiltered = FILTERS.some((name) => wanted[name]);
  return el(
    "div", { class: "notice" }, el("p", {}, "Nothing found for ", el("q", { dir: "auto" }, wanted.q), "."),
    isFiltered && el("p", { class: "buttons" }, button("Search everywhere", everywhere)),
  );
}

/** Another view: remember it in the address, and show it. */
function go(wanted, { typing = false } = {}) {
  k = K;
  write(wanted, { typing });
  show(wanted);
  if (wanted.isAsked) startAnswer(wanted);
  else hideAnswer();
  if (typing) {
    clearTimeout(pause);
    pause = setTimeout(() => find(wanted), PAUSE_MS);
  } else find(wanted);
}

function everywhere() {
  go({ ...view(), source_type: "", repository: "" });
  box.focus();
}

function clear() {
  if (!byId("answer").hidden && stopAnswer()) return;
  go({ ...view(), q: "" });
  box.focus();
}

function askNow() {
  const wanted = { ...view(), isAsked: true };
  if (wanted.q) go(wanted);
  if (!wanted.q || document.activeElement === document.body) box.focus();
}

function arrive(wanted) {
  k = K;
  show(wanted);
  if (wanted.isAsked) recallAnswer(wanted, askNow);
  else hideAnswer();
  find(wanted);
}

async function more() {
  const before = openers().length;
  k = Math.min(2 * k, MOST);
  await find(view());
  openers()[before]?.focus();
}

function loadFilters() {
  const chosen = (filters) => {
    go({ ...view(), ...filters });
    box.focus();
  };
  loadSources(chosen).catch((error) => {
    if (error.status === undefined) throw error;
    if (error.status === 401) askForKeyAfter(error);
    else if (!box.value.trim()) byId("overview").replaceChildren(trouble(error, loadFilters));
  });
}

function startTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (dark.matches ? "dark" : "light")) === "dark";
  const showTheme = () => {
    byId("theme-button").textContent = isDark() ? "Light" : "Dark";
    byId("theme-button").setAttribute("aria-label", isDark() ? "Use light colours" : "Use dark colours");
  };
  byId("theme-button").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("rag-theme", root.dataset.theme);
    } catch {
      // until the page is left
    }
    showTheme();
  });
  dark.addEventListener("change", showTheme);
  showTheme();
}

box.addEventListener("input", () => go(view(), { typing: true }));
byId("search").addEventListener("submit", (event) => {
  event.preventDefault();
  askNow();
});
for (const name of FILTERS) byId(name).addEventListener("change", () => go(view()));
byId("everywhere").addEventListener("click", everywhere);
byId("more").addEventListener("click", more);
startDialogs(() => {
  loadFilters();
  find(view(), { again: true });
});
startKeyboard({ clear });
startTheme();
onMove(arrive);
arrive(read());
loadFilters();
