// What is looked at, in the address: it can be shared, and the browser's back and forward work.

const NAMES = ["q", "source_type", "repository"];

export function read() {
  const from = new URLSearchParams(location.search);
  const view = Object.fromEntries(NAMES.map((name) => [name, (from.get(name) ?? "").slice(0, 1000)]));
  return { ...view, isAsked: from.get("ask") === "1" && view.q.trim() !== "" };
}

export function addressOf(view) {
  const query = new URLSearchParams();
  for (const name of NAMES) if (view[name]) query.set(name, view[name]);
  if (view.isAsked) query.set("ask", "1");
  const text = query.toString();
  return location.pathname + (text ? `?${text}` : "");
}

// While somebody types, one step of the history is written over and over: going back leaves the whole word.
let isTyping = false;

export function write(view, { typing = false } = {}) {
  const address = addressOf(view);
  if (address !== location.pathname + location.search) {
    if (typing && isTyping) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
  }
  isTyping = typing;
}

export function onMove(act) {
  addEventListener("popstate", () => {
    isTyping = false;
    act(read());
  });
}
