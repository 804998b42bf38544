// What went wrong, what to do, and the two dialogs.

import { key, setKey } from "./api.js";
import { button, byId, el, say } from "./dom.js";

/** A message with a way to try again; with `isPatient` it tries by itself once the service's pause is over. */
export function trouble(error, retry, { isPatient = false } = {}) {
  const again = button("Try again", retry, { class: "main" });
  const node = el(
    "div", { class: "notice" },
    el("p", {}, el("strong", {}, `${error.message}.`), error.wait ? ` Wait ${waitWords(error.wait)}.` : ""),
    el("p", { class: "soft", dir: "auto" }, sentence(error.detail)),
    el(
      "p", { class: "buttons" },
      [401, 403].includes(error.status) ? button("Enter a key", () => askForKey("", retry), { class: "main" }) : again,
    ),
  );
  say(`${error.message}. ${error.detail}`);
  if (error.wait && error.wait <= 120) countDown(error.wait, again, isPatient ? retry : null, node);
  if (error.code === "offline") addEventListener("online", () => node.isConnected && retry(), { once: true });
  return node;
}

const sentence = (text) => text.slice(0, 1).toUpperCase() + text.slice(1) + (/[\w)`]$/.test(text) ? "." : "");

const waitWords = (seconds) => (seconds < 120 ? `${seconds} s` : `${Math.round(seconds / 60)} minutes`);

function countDown(seconds, again, then, node) {
  const ends = Date.now() + seconds * 1000;
  const tick = setInterval(() => {
    const left = Math.ceil((ends - Date.now()) / 1000);
    again.textContent = left > 0 ? `Try again (${left})` : "Try again";
    if (left > 0 && node.isConnected) return;
    clearInterval(tick);
    if (node.isConnected) then?.();
  }, 500);
}

const waiting = new Set();

/** Ask for a key, and then do again what needed it. */
export function askForKey(reason, retry) {
  if (retry) waiting.add(retry);
  const dialog = byId("key-dialog");
  byId("key-reason").textContent = reason;
  byId("key-forget").hidden = !key();
  if (!dialog.open) {
    byId("key-box").value = "";
    dialog.showModal();
    byId("key-box").focus();
  }
}

/** What a refused request leads to: a question for a key when one is missing or wrong. */
export function askForKeyAfter(error, retry = null) {
  if (error.status === 401) {
    askForKey(key() ? "The service did not accept this key." : "The service answers only those who have a key.", retry);
  }
}

function useKey(value) {
  setKey(value);
  showKey();
  byId("key-dialog").close();
  const retries = [...waiting];
  waiting.clear();
  for (const retry of retries) retry();
}

export function showKey() {
  byId("key-button").textContent = key() ? "Key ✓" : "Key";
  byId("key-button").setAttribute("aria-label", key() ? "Key of the service, set" : "Key of the service, not set");
}

/** Wire both dialogs; `onKey` is told that the key is another one. */
export function startDialogs(onKey) {
  showKey();
  byId("key-button").addEventListener("click", () => askForKey("", null));
  byId("key-form").addEventListener("submit", (event) => {
    event.preventDefault();
    const value = byId("key-box").value.trim();
    if (!value) return byId("key-box").focus();
    waiting.add(onKey);
    return useKey(value);
  });
  byId("key-forget").addEventListener("click", () => {
    waiting.add(onKey);
    useKey("");
  });
  byId("key-cancel").addEventListener("click", () => byId("key-dialog").close());
  byId("key-dialog").addEventListener("close", () => waiting.clear());
  byId("help-button").addEventListener("click", () => byId("help-dialog").showModal());
}
