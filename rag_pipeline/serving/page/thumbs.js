// What people think of an answer or a hit.

import { feedback } from "./api.js";
import { button, el, say } from "./dom.js";

/** Two buttons, and room for a reason; `queryId()` is null where the service keeps no log, and then there is nothing. */
export function thumbs(queryId, { chunkId = null, question }) {
  if (!queryId()) return null;
  const told = el("span", { class: "soft" });
  const rate = async (isHelpful, reason = "") => {
    const body = { query_id: queryId(), helpful: isHelpful, ...(reason && { reason }), ...(chunkId && { chunk_id: chunkId }) };
    try {
      await feedback(body);
    } catch (error) {
      told.textContent = `Not sent: ${error.message.toLowerCase()}`;
      return say(told.textContent);
    }
    yes.setAttribute("aria-pressed", String(isHelpful));
    no.setAttribute("aria-pressed", String(!isHelpful));
    told.textContent = "Thank you";
    why.hidden = reason !== "";
    if (!reason) why.onsubmit = (event) => (event.preventDefault(), input.value.trim() && rate(isHelpful, input.value.trim()));
    return say("Thank you");
  };
  const yes = button("Yes", () => rate(true), { "aria-pressed": "false" });
  const no = button("No", () => rate(false), { "aria-pressed": "false" });
  const input = el("input", { type: "text", maxlength: "1000", placeholder: "Why? (optional)", "aria-label": "Why? (optional)" });
  const why = el("form", { class: "reason", hidden: true }, input, el("button", { class: "quiet" }, "Send"));
  return el("div", { class: "thumbs", role: "group", "aria-label": question }, el("span", {}, question), yes, no, why, told);
}
