// The list of hits, and why each is in it.

import { button, byId, copy, el, marked, outLink } from "./dom.js";
import { ago, cutsOf, isCode, kindName, marksOf, number, plural } from "./text.js";
import { thumbs } from "./thumbs.js";

const LEGS = { lexical: "Words (BM25)", vector: "Meaning (cosine)", rerank: "Reranker" };

let shown = "[]";
let queryId = null;

/** Put the hits on the page. The same ones again change nothing: what was unfolded stays, and nothing flickers. */
export function showHits(found) {
  queryId = found.query_id ?? null;
  const now = JSON.stringify(found.hits);
  if (now === shown) return;
  shown = now;
  const items = found.hits.map(item);
  byId("hits").replaceChildren(...items);
  items.forEach(fit);
}

/** What stands for a hit when one goes through them by keyboard. */
export const openers = () => [...document.querySelectorAll("#hits .open")];

export const explain = (opener) => opener.closest(".hit")?.querySelector(".explain")?.click();

export const copied = (hit) => outLink(hit.url, {})?.href ?? hit.location ?? "";

function item(hit) {
  const text = String(hit.text ?? "");
  const cuts = isCode(hit) ? [] : [...cutsOf(text, [hit.title, ...(hit.heading_path ?? [])]), ...marksOf(text)];
  const look = isCode(hit) ? "snippet code" : "snippet";
  const snippet = el("div", { class: look, dir: "auto" }, marked(text, hit.highlights, cuts.sort((a, b) => a[0] - b[0])));
  const whole = button("Show all", () => unfold(snippet, whole), { class: "quiet whole", "aria-expanded": "false", hidden: true });
  const why = el("div", { class: "why", id: `why-${hit.rank}`, hidden: true });
  const explaining = button("Why this?", () => toggle(explaining, why, hit), {
    class: "quiet explain", "aria-expanded": "false", "aria-controls": why.id,
  });
  const copying = button(outLink(hit.url, {}) ? "Copy link" : "Copy place", () => copy(copied(hit), copying));
  return el(
    "li", { class: "hit" },
    el("h3", { dir: "auto" }, opener(hit, () => unfold(snippet, whole)), linesOf(hit)),
    meta(hit), snippet,
    el("div", { class: "actions" }, explaining, whole, copying, score(hit)), why,
  );
}

const isInTitle = (hit) => Boolean(hit.title && String(hit.location ?? "").includes(hit.title));

export const linesOf = (hit) => isInTitle(hit) && el("span", { class: "soft lines" }, `:${hit.start_line}-${hit.end_line}`);

/** A link to the exact lines; where there is no address on the web, what unfolds the text. */
function opener(hit, unfoldIt) {
  const title = hit.title || hit.location || "Untitled";
  const look = { class: isInTitle(hit) ? "open path" : "open" };
  return outLink(hit.url, look, title) ?? el("button", { type: "button", click: unfoldIt, ...look }, title);
}

export function meta(hit) {
  const when = ago(hit.updated_at);
  const headings = (hit.heading_path ?? []).filter((heading) => heading && heading !== hit.title);
  return el(
    "p", { class: "meta" },
    el("span", { class: "kind" }, kindName(hit.source_type)), el("span", {}, hit.repository),
    !isInTitle(hit) && el("span", { class: "path" }, hit.location),
    headings.length > 0 && el("span", {}, headings.join(" › ")),
    when && el("time", { datetime: hit.updated_at, title: hit.updated_at }, when),
  );
}

const score = (hit) => el("span", { class: "soft score", title: "What it was ranked by" }, `score ${number(hit.score, 2)}`);

/** Long texts are cut to a few lines, those around the first marked word. */
function fit(hit) {
  const snippet = hit.querySelector(".snippet");
  if (snippet.scrollHeight <= snippet.clientHeight + 4) return;
  hit.querySelector(".whole").hidden = false;
  snippet.classList.add("cut");
  const first = snippet.querySelector("mark");
  const below = first ? first.offsetTop - snippet.clientHeight * 0.6 : 0;
  if (below > 0) snippet.scrollTop = below;
}

function unfold(snippet, by) {
  const isOpen = snippet.classList.toggle("unfolded");
  by.setAttribute("aria-expanded", String(isOpen));
  by.textContent = isOpen ? "Show less" : "Show all";
}

function toggle(by, why, hit) {
  if (!why.hasChildNodes()) why.append(...explanation(hit));
  why.hidden = !why.hidden;
  by.setAttribute("aria-expanded", String(!why.hidden));
}

function explanation(hit) {
  const legs = hit.legs ?? [];
  const terms = hit.matched_terms ?? [];
  const guessed = Object.entries(hit.corrected ?? {}).map(([word, words]) => `${words.join(" or ")} for ${word}`);
  const rows = legs.map(({ leg, rank, score }) =>
    el(
      "tr", {}, el("th", { scope: "row" }, LEGS[leg] ?? leg),
      el("td", {}, rank ? `#${number(rank)}` : "not among its best"), el("td", {}, number(score, 3)),
    ));
  return [
    el("p", {}, summary(legs)),
    rows.length > 0 && el(
      "table", {}, el("caption", { class: "unseen" }, "What each leg of the search says of this result"),
      el("thead", {}, el("tr", {}, ["Leg", "Rank", "Score"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows),
    ),
    terms.length > 0 && el("p", {}, "Your words in it, the rarest first: ", terms.map((term) => [el("code", {}, term), " "]).flat()),
    guessed.length > 0 && el("p", {}, `No document holds some of your words. Looked for instead: ${guessed.join("; ")}.`),
    el("p", { class: "soft" }, `Score ${number(hit.score, 3)} · ${plural(hit.tokens ?? 0, "token")} · chunk `, el("code", {}, hit.chunk_id)),
    thumbs(() => queryId, { chunkId: hit.chunk_id, question: "A good result?" }),
  ].filter(Boolean);
}

function summary(legs) {
  const rank = Object.fromEntries(legs.map(({ leg, rank }) => [leg, rank]));
  if (rank.lexical && rank.vector) return "Found by its words and by its meaning.";
  if (rank.lexical) return "Found by its words.";
  if (rank.vector) return "Found by its meaning.";
  return legs.length ? "Found beside other results." : "The service does not say why.";
}
