// Answers: a conversation for each question, written as it streams, with citations that lead to their sources.

import { addressOf } from "./address.js";
import { ask } from "./api.js";
import { button, byId, copy, el, outLink, say } from "./dom.js";
import { askForKeyAfter, trouble } from "./notices.js";
import { prose, quotes } from "./prose.js";
import { linesOf, meta } from "./results.js";
import { isCode, number, plural, reflowed, supportWords, verdict } from "./text.js";
import { thumbs } from "./thumbs.js";

const MOST_TURNS = 6;
const MOST_CHARACTERS = 4000; // of a turn that is sent along

const conversations = new Map(); // by address, so that back and forward ask nothing again
// A cut may leave half a character, which the service would refuse.
const short = (text) => text.slice(0, MOST_CHARACTERS).replace(/[\ud800-\udbff]$/, "");

let running = null;
let turns = 0;

/** Ask the question of the view in a conversation of its own. */
export function startAnswer(view) {
  const conversation = { view, history: [], node: el("div", { class: "conversation" }), more: null };
  conversations.set(addressOf(view), conversation);
  put(conversation.node);
  takeTurn(conversation, view.q);
}

/** Show what was answered before; a link to an answer that is not known here is offered, as asking may cost money. */
export function recallAnswer(view, onAsk) {
  const known = conversations.get(addressOf(view));
  put(known?.node ?? el("p", { class: "offer" }, "This link is to an answer. ", button("Ask for it", onAsk, { class: "main" })));
}

export function hideAnswer() {
  byId("answer").hidden = true;
}

/** Whether one was being written. */
export function stopAnswer() {
  const isRunning = running !== null;
  running?.abort();
  return isRunning;
}

function put(node) {
  byId("answer").replaceChildren(node);
  byId("answer").hidden = false;
}

async function takeTurn(conversation, question) {
  stopAnswer();
  const control = (running = new AbortController());
  conversation.more?.remove();
  const turn = blank(question, () => control.abort());
  conversation.node.append(turn.node);
  if (conversation.history.length) turn.title.focus();
  say("Searching for an answer");
  const askNext = (next) => takeTurn(conversation, next);
  const retry = () => {
    turn.node.remove();
    takeTurn(conversation, question);
  };
  try {
    const { history } = conversation;
    const given = await ask({ ...conversation.view, question, history: history.slice(-2 * MOST_TURNS) }, {
      signal: control.signal, onLooked: turn.looked, onText: turn.wrote,
    });
    history.push({ role: "user", content: short(question) });
    history.push({ role: "assistant", content: short(given.text) });
    finish(turn, given, { view: conversation.view, askNext });
  } catch (error) {
    turn.ended();
    if (control.signal.aborted) {
      turn.tell("Stopped. ", button("Ask again", retry));
      say("Stopped");
    } else if (error.status === undefined) throw error; // a fault of this page
    else {
      turn.tell(trouble(error, retry));
      askForKeyAfter(error, retry);
    }
  } finally {
    if (running === control) running = null;
    if (conversation.history.length && turn.node === conversation.node.lastChild) {
      conversation.node.append((conversation.more = furtherQuestion(askNext)));
    }
  }
}

/** The nodes of a turn, and what to do as the answer comes in. */
function blank(question, stop) {
  turns += 1;
  const title = el("h2", { tabindex: "-1", dir: "auto" }, question);
  const state = el("div", { class: "state" }, el("span", { class: "busy" }, "Searching …"), button("Stop", stop));
  const written = el("div", { class: "written", dir: "auto" });
  const rest = el("div", { class: "rest" });
  const node = el("article", { class: "turn", "aria-busy": "true" }, title, state, el("div", { class: "columns" }, written, rest));
  let text = "";
  let isPlanned = false;
  return {
    id: turns, title, node, written, rest,
    tell: (...nodes) => {
      const wasHere = state.contains(document.activeElement);
      state.replaceChildren(...nodes);
      if (wasHere) title.focus();
    },
    looked: ({ hits = [] }) => (state.firstChild.textContent = `Reading ${plural(hits.length, "passage")} …`),
    wrote: (more) => {
      state.firstChild.textContent = "Writing …";
      text += more;
      if (!isPlanned) requestAnimationFrame(() => {
        isPlanned = false;
        if (node.getAttribute("aria-busy")) written.replaceChildren(...prose(text, (n) => el("span", { class: "cite" }, n)));
      });
      isPlanned = true;
    },
    ended: () => node.removeAttribute("aria-busy"),
  };
}

function finish(turn, given, { view, askNext }) {
  turn.ended();
  const sources = given.sources ?? [];
  const items = new Map(sources.map((source) => [source.number, sourceItem(source, turn.id, given.model)]));
  const cite = (wanted) => {
    const source = sources.find(({ number }) => number === wanted);
    const lead = () => items.get(wanted).focus();
    return source && button(wanted, lead, { class: "cite", "aria-label": `Source ${wanted}: ${source.title}`, title: source.title });
  };
  const isCodeAt = (wanted) => isCode(sources.find(({ number }) => number === wanted) ?? {});
  turn.written.replaceChildren(...(given.model ? prose(given.text, cite) : quotes(given.text, cite, isCodeAt)));
  const judged = verdict(given);
  const told = el("span", { class: `verdict ${judged?.level}`, title: `confidence ${number(given.confidence, 2)}` }, judged?.words);
  turn.tell(
    judged ? told : "",
    el("span", { class: "soft" }, sources.length ? plural(sources.length, "source") : ""),
    button("Copy link", (event) => copy(new URL(addressOf(view), location.href).href, event.currentTarget)),
  );
  turn.written.after(el("div", { class: "notes" }, notes(given)));
  turn.rest.replaceChildren(...(items.size ? [el("h3", {}, "Sources"), el("ol", { class: "sources" }, [...items.values()])] : []));
  turn.node.append(after(given, askNext));
  say(`Answer ready. ${judged?.words ?? ""}. ${plural(sources.length, "source")}.`);
}

function notes(given) {
  const removed = given.removed_citations ?? 0;
  return [
    given.degraded && el("p", {}, `Note: ${given.degraded}`),
    removed > 0 && el("p", {}, `${plural(removed, "citation")} that pointed to nothing ${removed === 1 ? "was" : "were"} taken out.`),
    given.asked && given.asked !== given.question && el("p", {}, "Looked up: ", el("q", { dir: "auto" }, given.asked)),
    given.model && el("p", {}, madeBy(given)),
    !given.model && given.sources?.length > 0 && el("p", {}, "Made of quotes; no language model wrote it."),
  ];
}

function madeBy({ model, input_tokens, output_tokens, cost_usd, milliseconds }) {
  const cost = cost_usd ? ` · $${number(cost_usd, cost_usd < 0.01 ? 5 : 3)}` : "";
  // Not every service says what it counted.
  const tokens = input_tokens ? ` · ${number(input_tokens)} tokens read, ${number(output_tokens)} written` : "";
  return `${model}${tokens}${cost} · ${number(milliseconds / 1000, 1)} s`;
}

/** A path breaks after a slash, if it must. */
const breakable = (title) => title.split(/(?<=\/)(?=.)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

function sourceItem(source, turn, isQuoted) {
  const title = source.title || source.location;
  return el(
    "li", { tabindex: "-1", id: `source-${turn}-${source.number}`, value: source.number },
    el("p", { class: "title", dir: "auto" }, outLink(source.url, {}, breakable(title)) ?? el("strong", {}, breakable(title)), linesOf(source)),
    meta(source),
    isQuoted && quoteOf(source),
    isQuoted && el("p", { class: "soft", title: `support ${number(source.support, 2)}` }, supportWords(source.support)),
  );
}

const quoteOf = (source) => {
  const quote = String(source.quote ?? "");
  return el("blockquote", { class: isCode(source) ? "code" : "words", dir: "auto" }, isCode(source) ? quote : reflowed(quote));
};

function after(given, askNext) {
  const next = given.follow_ups ?? [];
  return el(
    "div", { class: "after" },
    next.length > 0 && el("ul", { class: "next", "aria-label": "Further questions" },
      next.map((question) => el("li", {}, button(question, () => askNext(question), { dir: "auto" })))),
    thumbs(() => given.query_id, { question: "Was this answer helpful?" }),
  );
}

/** Where one goes on with the conversation. */
function furtherQuestion(askNext) {
  const box = el("input", { type: "text", maxlength: "1000", placeholder: "Ask further", "aria-label": "Ask further about this answer" });
  const form = el("form", { class: "further" }, box, el("button", { class: "quiet" }, "Ask further"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (box.value.trim()) askNext(box.value.trim());
  });
  return form;
}
