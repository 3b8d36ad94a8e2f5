// Submits a task, follows its events and prints its result, with NATS alone: nothing of Longshore is needed.
import { randomUUID } from "node:crypto";
import { connect } from "@nats-io/transport-node";
import { DeliverPolicy, jetstream } from "@nats-io/jetstream";

const nc = await connect({ servers: process.env.NATS_URL ?? "nats://127.0.0.1:4222" });
const js = jetstream(nc);
const tenant = "default";
const id = randomUUID(); // the run's id: submitting again under the same id is the same run

try {
  // Submit: one publish, which the stream acknowledges once the task is stored. The subject says tenant, id and
  // priority. The id of the message and the expectation make it safe to publish again when no answer came.
  await js.publish(`tasks.normal.${tenant}.${id}`, JSON.stringify({ input: "Greet the harbour." }), {
    msgID: `${tenant}.${id}`,
    expect: { lastSubjectSequence: 0, lastSubjectSequenceSubject: `lanes.*.*.${tenant}.${id}` },
  });

  // Follow: an ordered consumer on the events of this run, from the first one. Events come at least once.
  const events = await js.consumers.get("EVENTS", {
    filter_subjects: `events.${tenant}.${id}.>`,
    deliver_policy: DeliverPolicy.All,
  });
  // A message is an event, or an array of them if the fleet bundles events.
  let last = 0;
  follow: for await (const message of await events.consume()) {
    for (const event of [message.json()].flat()) {
      const number = Number(event.sequence);
      if (number <= last) continue;
      last = number;
      const name = event.type.split(".")[1];
      console.log(number, name);
      if (name === "run_finished") break follow;
    }
  }

  // The whole result, from the dispatcher.
  const reply = await nc.request("longshore.result", JSON.stringify({ tenant, id }), { timeout: 10_000 });
  const result = reply.json();
  if (reply.headers?.get("Nats-Service-Error-Code")) throw new Error(result.detail);
  console.log(`${result.status}: ${result.result}`);
} finally {
  await nc.close();
}
