// A client library that others wrote for other agents: acp-factory starts `fixpoint acp` and drives it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { AgentFactory } from "acp-factory";
import { folder, program, right, slow, stdioArguments, task, wrong } from "./service.mjs";

async function withAgent(answers, use) {
  const place = folder();
  AgentFactory.register("fixpoint", { command: program, args: stdioArguments(place, answers), env: {} });
  const agent = await AgentFactory.spawn("fixpoint", { permissionMode: "auto-approve" });
  try {
    await use(agent, place);
  } finally {
    await agent.close();
    place.remove();
  }
}

test("a whole session", async () => {
  await withAgent([wrong, right], async (agent) => {
    assert.equal(agent.capabilities.loadSession, true);
    const session = await agent.createSession("/tmp");
    let message = "";
    const kinds = new Set();
    for await (const update of session.prompt(task)) {
      kinds.add(update.sessionUpdate);
      if (update.sessionUpdate === "agent_message_chunk") message += update.content.text;
    }
    assert.match(message, /return 2 \* x/);
    for (const kind of ["plan", "tool_call", "tool_call_update", "agent_thought_chunk"]) assert.ok(kinds.has(kind), kind);
  });
});

test("cancel", async () => {
  await withAgent([slow], async (agent) => {
    const session = await agent.createSession("/tmp");
    for await (const update of session.prompt(task)) {
      if (update.sessionUpdate === "plan") await session.cancel();
    }
  });
});

test("load", async () => {
  await withAgent([right], async (agent) => {
    const session = await agent.createSession("/tmp");
    for await (const update of session.prompt(task)) void update;
    const again = await agent.loadSession(session.id, "/tmp");
    assert.equal(again.id, session.id);
  });
});
