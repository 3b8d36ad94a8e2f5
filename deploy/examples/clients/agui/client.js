// Follows one run as AG-UI over a connection that breaks after every frame, and another one over a connection that breaks
// once, between any two frames. The events of all connections to a run are one stream, which verifyEvents must accept.
import { verifyEvents } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";

const api = process.env.LONGSHORE_API ?? "http://127.0.0.1:8420";

async function request(path, init) {
  const response = await fetch(api + path, init);
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

// follow yields the frames after an id: {id, event}. Like EventSource, it stops for good at a 204.
async function* follow(run, last, signal) {
  const headers = last ? { "Last-Event-ID": last } : {};
  const response = await request(`/v1/tasks/${run}/events?format=ag-ui&deltas=true`, { headers, signal });
  if (response.status === 204) return;
  let text = "";
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const frame = { id: undefined, event: undefined };
      for (const line of text.slice(0, end).split("\n")) {
        if (line.startsWith("id: ")) frame.id = line.slice(4);
        if (line.startsWith("data: ")) frame.event = JSON.parse(line.slice(6));
      }
      if (frame.event) yield frame;
    }
  }
}

// some is the first frames after an id; then the connection is cut.
async function some(run, last, most = Infinity) {
  const cut = new AbortController();
  const frames = [];
  for await (const frame of follow(run, last, cut.signal)) {
    if (frames.push(frame) >= most) break;
  }
  cut.abort();
  return frames;
}

const ends = ["RUN_FINISHED", "RUN_ERROR"];

async function verified(frames, how) {
  const events = await lastValueFrom(from(frames.map((f) => f.event)).pipe(verifyEvents(false), toArray()));
  if (!ends.includes(events.at(-1)?.type)) throw new Error(`${how}: it ends with ${events.at(-1)?.type}`);
  const shown = new Map();
  for (const e of events) {
    if (e.type === "TEXT_MESSAGE_CONTENT") shown.set(e.messageId, (shown.get(e.messageId) ?? "") + e.delta);
    if (e.type === "CUSTOM" && e.name === "longshore.reset") shown.delete(e.value.messageId);
  }
  return [...shown.values()].join("\n");
}

async function submit() {
  const task = { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ input: "Count the ships." }) };
  return (await (await request("/v1/tasks", task)).json()).id;
}

// A connection that breaks after every frame, while the reply is written.
const broken = await submit();
let frames = [];
while (!ends.includes(frames.at(-1)?.event.type)) {
  frames.push(...(await some(broken, frames.at(-1)?.id, 1)));
  if (frames.length > 100) throw new Error("it does not get on");
}
const want = await verified(frames, "cut after every frame");
console.log(want);

// A connection that lasts, and what a client reads that lost it after any one of its frames.
const lasting = await submit();
frames = await some(lasting);
if (frames.filter((f) => f.event.type === "TEXT_MESSAGE_CONTENT").length < 2) throw new Error("no text came while it was written");
for (let n = 1; n <= frames.length; n++) {
  const rest = await some(lasting, frames[n - 1].id);
  const text = await verified([...frames.slice(0, n), ...rest], `cut after frame ${n}`);
  if (text !== want) throw new Error(`cut after frame ${n}: ${text}`);
}
console.log("verified after every cut");
