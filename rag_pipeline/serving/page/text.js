// From what the service says to what is shown, as values: nothing here touches the page.

/** The address as it may be linked to, or null: only http and https, and nothing that hides the host behind a name. */
export function safeAddress(address) {
  try {
    const url = new URL(address);
    const isWeb = url.protocol === "https:" || url.protocol === "http:";
    return isWeb && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

/**
 * The text cut at the spans, in order: [{text, marked}]. Spans are counted in code points, as Python counts, while
 * strings are made of UTF-16 units here. Spans that make no sense are left out. `cuts` are of UTF-16 units.
 */
export function pieces(text, spans, cuts = []) {
  const at = [];
  for (let unit = 0; unit < text.length; unit += text.codePointAt(unit) > 0xffff ? 2 : 1) at.push(unit);
  at.push(text.length);
  const last = at.length - 1;
  const found = [];
  let done = 0;
  const add = (from, to, marked) => {
    const piece = without(text, from, to, cuts);
    if (piece) found.push({ text: piece, marked });
  };
  const inOrder = (Array.isArray(spans) ? spans : [])
    .filter((span) => Array.isArray(span) && span.length === 2 && span.every(Number.isInteger))
    .sort((a, b) => a[0] - b[0]);
  for (const [start, end] of inOrder) {
    const from = Math.max(done, at[Math.min(Math.max(start, 0), last)]);
    const to = at[Math.min(Math.max(end, 0), last)];
    if (to <= from) continue;
    add(done, from, false);
    add(from, to, true);
    done = to;
  }
  add(done, text.length, false);
  return found;
}

function without(text, from, to, cuts) {
  let kept = "";
  let at = from;
  for (const [start, end, instead] of cuts) {
    if (end <= from || start >= to) continue;
    kept += text.slice(at, Math.max(start, from)) + (start >= from ? instead : "");
    at = Math.max(at, Math.min(end, to));
  }
  return kept + text.slice(at, to);
}

const FENCE = /^\s*(```|~~~)/;
const GOES_ON = /^ {0,6}(?:\*\*(?=\S)|(?![\s#>|*+=:-]|```|~~~|\.\. |\d+[.)]\s))/;
const STRONG = /`[^`]*`|\*\*(?=\S)([^*`]*[^*`\s])\*\*/g;

/**
 * What prose is shown without, [start, end, what instead]: ends of lines within a paragraph, whose source is as wide as
 * its author's editor was, and a heading at the start that is said above it already.
 */
export function cutsOf(text, said = []) {
  const cuts = [];
  let at = 0;
  let isFenced = false;
  const heading = /^#{1,6} +([^\n]+)\n+/.exec(text);
  if (heading && said.includes(heading[1].replaceAll("`", "").trim())) cuts.push([0, heading[0].length, ""]);
  const lines = text.split("\n");
  lines.forEach((line, index) => {
    const next = lines[index + 1];
    if (FENCE.test(line)) isFenced = !isFenced;
    else if (!isFenced && line.length >= 50 && next && /^ {0,3}[^\s|#]/.test(line) && GOES_ON.test(next)) {
      cuts.push([at + line.length, at + line.length + 1 + next.search(/\S/), " "]);
    }
    at += line.length + 1;
  });
  return cuts;
}

/** What a snippet of prose is shown without besides: the lines of fences, and the marks of strong words. */
export function marksOf(text) {
  const cuts = [];
  let at = 0;
  let isFenced = false;
  for (const line of text.split("\n")) {
    if (FENCE.test(line)) {
      isFenced = !isFenced;
      cuts.push([at, at + line.length + 1, ""]);
    } else if (!isFenced) {
      for (const { 0: whole, 1: strong, index } of line.matchAll(STRONG)) {
        const end = at + index + whole.length;
        if (strong) cuts.push([at + index, at + index + 2, ""], [end - 2, end, ""]);
      }
    }
    at += line.length + 1;
  }
  return cuts;
}

/** Prose as it is shown, where nothing in it is marked. */
export const reflowed = (text) => without(text, 0, text.length, cutsOf(text));

const STEPS = [["year", 31536000], ["month", 2592000], ["week", 604800], ["day", 86400], ["hour", 3600], ["minute", 60]];

/** How long ago, in words; empty for what is no time. */
export function ago(time, now = Date.now()) {
  const seconds = (Date.parse(time) - now) / 1000;
  if (Number.isNaN(seconds)) return "";
  const [unit, size] = STEPS.find(([, size]) => Math.abs(seconds) >= size) ?? ["minute", 60];
  return new Intl.RelativeTimeFormat("en", { numeric: "auto" }).format(Math.trunc(seconds / size), unit);
}

export const number = (value, digits = 0) =>
  Number(value ?? 0).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

export const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;

const KINDS = { github_issue: "issues", github_pull_request: "pull requests", docs: "docs", code: "code" };

export const kindName = (type) => KINDS[type] ?? String(type).replaceAll("_", " ");

export const isCode = (hit) => hit.source_type === "code";

/**
 * What to think of an answer: a level for its colour, and words. Quotes are always in their source; the question is
 * whether they answer what was asked.
 */
export function verdict({ status, confidence, model }) {
  if (status === "small_talk") return null;
  if (status === "unknown") return { level: "none", words: "Not in the index" };
  if (status === "unsupported") return { level: "low", words: "Not supported by the sources" };
  if (confidence >= 0.7) return { level: "high", words: model ? "Well supported" : "Probably answers this" };
  if (confidence >= 0.4) return { level: "middle", words: model ? "Partly supported" : "May answer this" };
  return { level: "low", words: model ? "Thinly supported" : "Hardly answers this" };
}

export const supportWords = (support) =>
  support >= 0.7 ? "supports it" : support >= 0.4 ? "supports it in part" : "hardly supports it";
