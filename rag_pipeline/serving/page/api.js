// The service, as this page asks it. Addresses are relative: the page may stand behind a proxy, under a path.

import { events } from "./sse.js";

const KEY = "rag-key";

/** Why there is no answer: what to tell, and how long to wait. */
export class Refused extends Error {
  constructor({ status = 0, code = "", title, detail = "", wait = null }) {
    super(title);
    Object.assign(this, { status, code, detail, wait });
  }
}

const TITLES = {
  401: "The service asks for a key",
  403: "This key may not do that",
  429: "Too many requests",
  503: "The service is not available at the moment",
  504: "It took too long",
};

// Only in this tab, and gone with it. Where storage is forbidden, until the page is left.
let keyHere = "";

export function key() {
  try {
    return sessionStorage.getItem(KEY) ?? "";
  } catch {
    return keyHere;
  }
}

export function setKey(value) {
  keyHere = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch {
    // kept in keyHere
  }
}

async function request(path, { method = "GET", body, signal, accept = "application/json" } = {}) {
  const headers = { Accept: accept };
  if (key()) headers.Authorization = `Bearer ${key()}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method, headers, signal, body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin", cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw unreached(error);
  }
  if (!response.ok) throw await refusal(response);
  return response;
}

function unreached() {
  return navigator.onLine
    ? new Refused({ code: "unreached", title: "The service cannot be reached" })
    : new Refused({ code: "offline", title: "You are offline" });
}

async function refusal(response) {
  let error = {};
  try {
    error = (await response.json()).error ?? {};
  } catch {
    // something in between answered, with a page of its own
  }
  const { status } = response;
  const seconds = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  return new Refused({
    status, code: String(error.code ?? ""), title: TITLES[status] ?? `The service refused this (${status})`,
    detail: String(error.message ?? ""), wait: seconds > 0 ? seconds : null,
  });
}

async function json(path, options) {
  const response = await request(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (options?.signal?.aborted) throw error;
    throw new Refused({ code: "broken", title: "The answer of the service broke off" });
  }
}

const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== "" && value !== null));

export const search = ({ q, source_type, repository }, k, signal) =>
  json(`v1/search?${new URLSearchParams(given({ q, k, source_type, repository }))}`, { signal });

export const sources = () => json("v1/sources");

export const feedback = (body) => json("v1/feedback", { method: "POST", body });

/** The answer to a question; `onLooked` and `onText` are told what is known before it is complete. */
export async function ask({ question, history, source_type, repository }, { signal, onLooked, onText }) {
  const body = { ...given({ question, source_type, repository }), ...(history.length ? { history } : {}) };
  const response = await request("v1/ask", { method: "POST", body, signal, accept: "text/event-stream" });
  const brokenOff = () => new Refused({ code: "broken", title: "The answer broke off before its end" });
  try {
    if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) return await response.json();
    for await (const { event, data } of events(response.body)) {
      const said = JSON.parse(data);
      if (event === "answer") return said;
      if (event === "looked") onLooked(said);
      if (event === "text") onText(String(said.text ?? ""));
      if (event === "error") {
        const { code, message } = said.error ?? {};
        throw new Refused({ code, title: "There is no answer", detail: String(message ?? "") });
      }
    }
  } catch (error) {
    if (signal.aborted || error instanceof Refused) throw error;
    throw brokenOff();
  }
  throw brokenOff();
}
