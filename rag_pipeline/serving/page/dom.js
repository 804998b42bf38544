// Making nodes. Text only ever becomes text: no string is parsed as markup anywhere on this page.

import { pieces, safeAddress } from "./text.js";

/** A node with attributes, listeners (functions) and children; what is null, false or empty is left out. */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") node.addEventListener(name, value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  const kept = children.flat().filter((child) => child !== null && child !== undefined && child !== false && child !== "");
  node.append(...kept.map((child) => (child instanceof Node ? child : String(child))));
  return node;
}

export const byId = (id) => document.getElementById(id);

export const button = (text, click, attributes = {}) =>
  el("button", { type: "button", class: "quiet", click, ...attributes }, text);

/** A link in a tab of its own; null for addresses that are not linked to. */
export function outLink(address, attributes, ...children) {
  const href = safeAddress(address);
  return href && el("a", { href, target: "_blank", rel: "noopener noreferrer", ...attributes }, ...children);
}

export const marked = (text, spans, cuts) =>
  pieces(text, spans, cuts).map((piece) => (piece.marked ? el("mark", {}, piece.text) : piece.text));

let lastSaid = "";
let sayLater;

/** Tell those who cannot see it; the last of several in quick succession, and never the same again. */
export function say(words, delay = 0) {
  clearTimeout(sayLater);
  sayLater = setTimeout(() => {
    if (words !== lastSaid) byId("live").textContent = words;
    lastSaid = words;
  }, delay);
}

/** Copy, and say so on the button for a moment. */
export async function copy(text, by) {
  const words = by.textContent;
  const isCopied = await write(text);
  by.textContent = isCopied ? "Copied" : "Not copied";
  say(isCopied ? "Copied" : "It could not be copied");
  setTimeout(() => (by.textContent = words), 1500);
}

async function write(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers offer the clipboard only to https and localhost; this older way works elsewhere.
    const area = el("textarea", { class: "unseen", "aria-hidden": "true" });
    area.value = text;
    const focused = document.activeElement;
    document.body.append(area);
    area.select();
    const isCopied = document.execCommand("copy");
    area.remove();
    focused?.focus();
    return isCopied;
  }
}
