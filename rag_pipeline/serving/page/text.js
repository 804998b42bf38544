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
 * strings are made of UTF-16 units here. Spans that make no sense are left out.
 */
export function pieces(text, spans) {
  const at = [];
  for (let unit = 0; unit < text.length; unit += text.codePointAt(unit) > 0xffff ? 2 : 1) at.push(unit);
  at.push(text.length);
  const last = at.length - 1;
  const found = [];
  let done = 0;
  const inOrder = (Array.isArray(spans) ? spans : [])
    .filter((span) => Array.isArray(span) && span.length === 2 && span.every(Number.isInteger))
    .sort((a, b) => a[0] - b[0]);
  for (const [start, end] of inOrder) {
    const from = Math.max(done, at[Math.min(Math.max(start, 0), last)]);
    const to = at[Math.min(Math.max(end, 0), last)];
    if (to <= from) continue;
    if (from > done) found.push({ text: text.slice(done, from), marked: false });
    found.push({ text: text.slice(from, to), marked: true });
    done = to;
  }
  if (done < text.length) found.push({ text: text.slice(done), marked: false });
  return found;
}

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

/** What to think of an answer: a level for its colour, and words. */
export function verdict({ status, confidence }) {
  if (status === "small_talk") return null;
  if (status === "unknown") return { level: "none", words: "Not in the index" };
  if (status === "unsupported") return { level: "low", words: "Not borne out by the sources" };
  if (confidence >= 0.7) return { level: "high", words: "Well supported" };
  if (confidence >= 0.4) return { level: "middle", words: "Partly supported" };
  return { level: "low", words: "Thinly supported" };
}

export const supportWords = (support) =>
  support >= 0.7 ? "bears it out" : support >= 0.4 ? "bears it out in part" : "hardly bears it out";
