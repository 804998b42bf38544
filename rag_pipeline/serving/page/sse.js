// Server-sent events of a body that is read with fetch, as EventSource can neither POST nor send a key.
// https://html.spec.whatwg.org/multipage/server-sent-events.html#event-stream-interpretation

/** The events of a stream of bytes: {event, data}, where data is the text. */
export async function* events(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  let event = "";
  let data = [];
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += done ? decoder.decode() : decoder.decode(value, { stream: true });
      // A carriage return at the end may be half of a line's end.
      const held = !done && rest.endsWith("\r") ? 1 : 0;
      const lines = rest.slice(0, rest.length - held).split(/\r\n|\n|\r/);
      rest = lines.pop() + (held ? "\r" : "");
      for (const line of lines) {
        if (line === "") {
          if (data.length) yield { event: event || "message", data: data.join("\n") };
          event = "";
          data = [];
          continue;
        }
        const colon = line.indexOf(":");
        const field = colon < 0 ? line : line.slice(0, colon);
        const text = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
        if (field === "event") event = text;
        if (field === "data") data.push(text);
      }
      if (done) return; // an event without the empty line after it is not complete, and is dropped
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
