// The text of an answer as nodes: the little of Markdown that language models write, and the marks of citations.

import { el } from "./dom.js";
import { reflowed } from "./text.js";

const INLINE = /`([^`\n]+)`|\*\*([^*\n]+)\*\*|\[Source (\d{1,4})\]|\\([!-/:-@[-`{-~])/g;
const MARKS = /((?:\s*\[Source \d{1,4}\])+)/;
const ITEM = /^\s{0,3}(?:([-*•])|\d{1,3}[.)])\s+(.*)$/;

/** Words of one paragraph; `cite(number)` makes the node of a mark. */
function words(text, cite) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(INLINE)) {
    nodes.push(text.slice(done, found.index));
    const [whole, code, strong, source, escaped] = found;
    if (code) nodes.push(el("code", {}, code));
    else if (escaped) nodes.push(escaped);
    else if (strong) nodes.push(el("strong", {}, strong));
    else nodes.push(cite(Number(source)) ?? whole);
    done = found.index + whole.length;
  }
  nodes.push(text.slice(done));
  return nodes;
}

/** Paragraphs, lists, headings and fenced code of a text that a model wrote. */
export function prose(text, cite) {
  const blocks = [];
  let fence = null;
  let open = null; // the paragraph or list that lines are added to
  for (const line of text.split("\n")) {
    if (/^\s{0,3}```/.test(line)) {
      if (!fence) blocks.push((fence = { kind: "pre", lines: [] }));
      else fence = null;
      open = null;
    } else if (fence) fence.lines.push(line);
    else if (!line.trim()) open = null;
    else {
      const item = ITEM.exec(line);
      const heading = /^#{1,6}\s+(.*)$/.exec(line);
      const kind = heading ? "head" : item ? (item[1] ? "ul" : "ol") : "p";
      if (!open || (open.kind !== kind && kind !== "p") || kind === "head") {
        blocks.push((open = { kind, lines: [], start: item && !item[1] ? Number.parseInt(line.trim(), 10) : null }));
      }
      if (item || open.kind === "p" || open.kind === "head") open.lines.push(heading?.[1] ?? item?.[2] ?? line);
      else open.lines[open.lines.length - 1] += `\n${line.trim()}`; // an item goes on
      if (heading) open = null;
    }
  }
  return blocks.map((block) => {
    if (block.kind === "pre") return el("pre", {}, el("code", {}, block.lines.join("\n")));
    if (block.kind === "head") return el("p", {}, el("strong", {}, words(block.lines.join(" "), cite)));
    if (block.kind === "p") return el("p", {}, words(block.lines.join("\n"), cite));
    const start = block.start > 1 ? block.start : null;
    return el(block.kind, { start }, block.lines.map((line) => el("li", {}, words(line, cite))));
  });
}

/** An answer that is made of quotes: each with its marks under it; code as it stands in its source. */
export function quotes(text, cite, isCode) {
  const parts = text.split(MARKS);
  const nodes = [];
  for (let i = 0; i < parts.length; i += 2) {
    const quote = parts[i].replace(/^\s*\n/, "").trimEnd();
    const numbers = [...(parts[i + 1] ?? "").matchAll(/\d+/g)].map((found) => Number(found[0]));
    if (!quote.trim() && !numbers.length) continue;
    if (!numbers.length) nodes.push(el("p", {}, quote.trim()));
    else {
      const isBareCode = numbers.every(isCode) && !quote.includes("```");
      const shown = isBareCode ? quote : prose(reflowed(quote), cite);
      const marks = numbers.map((number) => cite(number) ?? `[Source ${number}]`);
      nodes.push(el("blockquote", { class: isBareCode ? "code" : "words", dir: "auto" }, shown, el("footer", {}, "from ", marks)));
    }
  }
  return nodes;
}
