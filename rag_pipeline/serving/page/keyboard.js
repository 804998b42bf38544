// Keys. Single letters can be switched off (WCAG 2.1.4): people who speak to their computer type words by accident.

import { byId } from "./dom.js";
import { explain, openers } from "./results.js";

const OFF = "rag-letters-off";

/** `clear` is what Esc does outside dialogs. */
export function startKeyboard({ clear }) {
  const letters = byId("letters");
  letters.checked = !isOff();
  letters.addEventListener("change", () => keepOff(!letters.checked));
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (act(event, { clear, letters: letters.checked })) event.preventDefault();
  });
}

function act({ key, target }, { clear, letters }) {
  const box = byId("box");
  if (target !== box && target.matches("input, select, textarea")) return false;
  if (key === "Escape") return clear(), true;
  if (target === box) return key === "ArrowDown" && move(1);
  if (key === "ArrowDown" || key === "ArrowUp") {
    return target.closest("#hits") !== null && move(key === "ArrowDown" ? 1 : -1);
  }
  if (!letters) return false;
  if (key === "/") return box.focus(), box.select(), true;
  if (key === "?") return byId("help-dialog").showModal(), true;
  if (key === "j" || key === "k") return move(key === "j" ? 1 : -1);
  if (key === "e") return explain(target), target.closest(".hit") !== null;
  return false;
}

/** To the next result, or the one before; before the first is the box. */
function move(by) {
  const all = openers();
  if (!all.length) return false;
  const hit = document.activeElement?.closest(".hit");
  const at = all.findIndex((opener) => opener.closest(".hit") === hit) + by;
  if (at < 0) byId("box").focus();
  else {
    const next = all[Math.min(at, all.length - 1)];
    next.focus({ preventScroll: true });
    next.closest(".hit").scrollIntoView({ block: "nearest" });
  }
  return true;
}

function isOff() {
  try {
    return localStorage.getItem(OFF) === "1";
  } catch {
    return false;
  }
}

function keepOff(isNowOff) {
  try {
    if (isNowOff) localStorage.setItem(OFF, "1");
    else localStorage.removeItem(OFF);
  } catch {
    // until the page is left
  }
}
