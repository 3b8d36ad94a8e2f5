// Serves two tools over NATS, as docs/tools/remote.md describes. It needs nothing but a NATS client: a micro service is a program that
// answers $SRV.INFO.
//
//   node server.js FOLDER_OF_THE_DEFINITIONS
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { connect, nuid } from "@nats-io/transport-node";

const folder = process.argv[2];
if (!folder) {
  console.error("name the folder of the definitions, such as deploy/examples/remote");
  process.exit(2);
}

// Which call made which booking, so that a call that comes twice books once. A real program keeps this where its bookings are.
const booked = new Map();

const tools = {
  tide_table({ harbour, day }) {
    if (harbour !== "Cuxhaven") throw new Error(`there is no tide table of "${harbour}"; there is one of Cuxhaven`);
    return `${day} 04:12 high 3.4 m, 10:31 low 0.4 m, 16:40 high 3.3 m, 22:55 low 0.5 m`;
  },
  book_pilot({ ship }, headers) {
    // The key is unique in its run, and the run in its tenant.
    const key = ["Longshore-Tenant", "Longshore-Run", "Idempotency-Key"].map((h) => headers.get(h)).join(" ");
    if (!booked.has(key)) booked.set(key, booked.size + 1);
    return `Pilot ${booked.get(key)} comes to ${ship}`;
  },
};

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222", name: "harbour tools", maxReconnectAttempts: -1 });
const queue = "q"; // that of micro services: one program gets each call
const endpoints = [];
for (const [name, tool] of Object.entries(tools)) {
  const subject = "tools." + name;
  endpoints.push({ name, subject, queue_group: queue, metadata: { "longshore.tool": readFileSync(join(folder, name + ".json"), "utf8") } });
  nc.subscribe(subject, {
    queue,
    callback: (err, msg) => {
      if (err) return console.error(err.message);
      if (Date.parse(msg.headers?.get("Longshore-Deadline")) < Date.now()) return; // the worker has given the call up
      let answer;
      try {
        answer = { text: tool(msg.json(), msg.headers) };
      } catch (e) {
        answer = { text: e.message, error: true };
      }
      msg.respond(JSON.stringify(answer));
    },
  });
}

const service = { name: "longshore-tools", id: nuid.next(), version: "1.0.0", metadata: {} };
const verbs = {
  INFO: { ...service, type: "io.nats.micro.v1.info_response", description: "tools of the harbour", endpoints },
  PING: { ...service, type: "io.nats.micro.v1.ping_response" },
};
for (const [verb, answer] of Object.entries(verbs)) {
  for (const subject of [`$SRV.${verb}`, `$SRV.${verb}.${service.name}`, `$SRV.${verb}.${service.name}.${service.id}`]) {
    nc.subscribe(subject, { callback: (err, msg) => err || msg.respond(JSON.stringify(answer)) });
  }
}
console.log("serving");
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => nc.drain());
await nc.closed();
