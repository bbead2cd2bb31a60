// The service's public API, asked with the key of this tab.

const KEPT = "tidings-key";
let refused = () => {};

export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export const key = {
  get: () => sessionStorage.getItem(KEPT),
  set: (text) => (text ? sessionStorage.setItem(KEPT, text) : sessionStorage.removeItem(KEPT)),
};

// Called when the service wants a key, or another.
export function whenRefused(call) {
  refused = call;
}

function headers(more) {
  const text = key.get();
  return text ? { ...more, Authorization: `Bearer ${text}` } : more;
}

async function problemOf(answer) {
  const said = await answer.json().catch(() => ({}));
  if (answer.status === 401) refused(said.detail);
  return new Problem(answer.status, said.detail || `${answer.status} ${answer.statusText}`);
}

export async function ask(method, path, body, signal) {
  const given = { method, signal, headers: headers(body === undefined ? {} : { "Content-Type": "application/json" }) };
  if (body !== undefined) given.body = typeof body === "string" ? body : JSON.stringify(body);
  const answer = await fetch(path, given);
  if (!answer.ok) throw await problemOf(answer);
  return answer.status === 204 ? null : answer.json();
}

export const get = (path, signal) => ask("GET", path, undefined, signal);
export const of = (topic, ...parts) => ["/topics", topic, ...parts].map((part, at) => (at ? encodeURIComponent(part) : part)).join("/");

export function query(path, given) {
  const said = Object.entries(given).filter(([, value]) => value !== null && value !== undefined && value !== "");
  return said.length ? `${path}?${new URLSearchParams(said)}` : path;
}

// A controller whose signal ends with the given one, and leaves nothing behind there when it ends before.
export function within(signal) {
  const mine = new AbortController();
  signal.addEventListener("abort", () => mine.abort(), { signal: mine.signal });
  return mine;
}

// A stream of Server-Sent Events that comes back after a break, until the signal. EventSource cannot send a key.
export async function listen(path, signal, heard, state = () => {}) {
  let last = null;
  while (!signal.aborted) {
    try {
      const more = last === null ? {} : { "Last-Event-ID": last };
      const answer = await fetch(path, { signal, headers: headers({ Accept: "text/event-stream", ...more }) });
      if (!answer.ok) throw await problemOf(answer);
      state("open");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (rest + value).split("\n\n");
        rest = parts.pop();
        for (const part of parts) {
          const event = read(part);
          if (event.id) last = event.id;
          if (event.data) heard(event.name, JSON.parse(event.data));
        }
      }
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Problem && problem.status < 500 && problem.status !== 429) {
        state("refused", problem);
        return;
      }
    }
    state("away");
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

function read(part) {
  const event = { name: "message", id: null, data: "" };
  for (const line of part.split("\n")) {
    const at = line.indexOf(":");
    const value = line.slice(at + 1).trimStart();
    if (line.startsWith("event:")) event.name = value;
    else if (line.startsWith("id:")) event.id = value;
    else if (line.startsWith("data:")) event.data += value;
  }
  return event;
}
