// The official SDK over stdio: `fixpoint acp`, everything in one process.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { test } from "node:test";
import { connect, folder, followed, hello, joined, right, slow, startStdio, stdioArguments, task, text, wrong } from "./service.mjs";

async function session(answers, handlers, use, ...more) {
  const place = folder();
  const service = startStdio(stdioArguments(place, answers, ...more));
  const it = connect(service.stream, handlers);
  try {
    await use(it, place, service);
    assert.deepEqual(it.checker.problems, []);
  } finally {
    service.child.stdin.end();
    service.child.kill();
    await service.ended;
    place.remove();
  }
}

test("a whole session: a wrong draft, its verdict, the repair", async () => {
  await session([wrong, right], {}, async ({ agent, updates }) => {
    const welcome = await agent.request("initialize", hello());
    assert.equal(welcome.protocolVersion, 1);
    assert.equal(welcome.agentInfo.name, "fixpoint");
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const end = await agent.request("session/prompt", { sessionId, prompt: text(task) });
    assert.equal(end.stopReason, "end_turn");
    assert.equal(end._meta.fixpoint.outcome, "solved");
    assert.match(joined(updates, "agent_thought_chunk"), /It must be multiplied/);
    assert.match(joined(updates, "agent_message_chunk"), /return 2 \* x/);
    const runs = updates.filter(({ update }) => update.sessionUpdate === "tool_call_update").map(({ update }) => update);
    assert.deepEqual(runs.map((run) => run.status), ["failed", "completed"]);
    assert.equal(runs[0].rawOutput.status, "wrong_answer");
    const listed = await agent.request("session/list", {});
    assert.equal(listed.sessions[0].sessionId, sessionId);
    await agent.request("session/close", { sessionId });
  });
});

test("cancel answers the prompt with cancelled, and the next prompt works", async () => {
  await session([slow, right], {}, async ({ agent, until }) => {
    await agent.request("initialize", hello());
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const prompt = agent.request("session/prompt", { sessionId, prompt: text(task) });
    await until(({ update }) => update.sessionUpdate === "plan");
    await agent.notify("session/cancel", { sessionId });
    assert.equal((await prompt).stopReason, "cancelled");
    assert.equal((await agent.request("session/prompt", { sessionId, prompt: text(task) })).stopReason, "end_turn");
  });
});

test("permission: the edited file is written when the person says so", async () => {
  const asked = [];
  const handlers = {
    "session/request_permission": (params) => {
      asked.push(params);
      return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
    },
    "fs/read_text_file": ({ path }) => ({ content: readFileSync(path, "utf8") }),
    "fs/write_text_file": ({ path, content }) => {
      writeFileSync(path, content);
      return {};
    },
  };
  await session([right], handlers, async ({ agent }, place) => {
    const file = place.file("double.py");
    writeFileSync(file, "def double(x):\n    return x + x + 1\n");
    writeFileSync(place.file("test_double.py"), "assert double(2) == 4\n");
    await agent.request("initialize", hello({ readTextFile: true, writeTextFile: true }));
    const { sessionId } = await agent.request("session/new", { cwd: place.path, mcpServers: [] });
    const end = await agent.request("session/prompt", {
      sessionId,
      prompt: [...text("Repair double: it must give twice the number."), { type: "resource_link", uri: pathToFileURL(file).href, name: "double.py" }],
    });
    assert.equal(end.stopReason, "end_turn");
    assert.equal(end._meta.fixpoint.written, file);
    assert.match(readFileSync(file, "utf8"), /2 \* x/);
    assert.equal(asked[0].toolCall.kind, "edit");
  });
});

test("escalation: the person grants more rounds", async () => {
  const handlers = { "session/request_permission": () => ({ outcome: { outcome: "selected", optionId: "more_rounds" } }) };
  await session([wrong, right], handlers, async ({ agent }) => {
    await agent.request("initialize", hello());
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const end = await agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { budget: { rounds: 0 } } } });
    assert.equal(end._meta.fixpoint.outcome, "solved");
  });
});

test("a budget's end is a stop reason with the best program", async () => {
  const handlers = { "session/request_permission": () => ({ outcome: { outcome: "selected", optionId: "person" } }) };
  await session([wrong], handlers, async ({ agent }) => {
    await agent.request("initialize", hello());
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const end = await agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { budget: { rounds: 0 } } } });
    assert.equal(end.stopReason, "max_turn_requests");
    assert.match(end._meta.fixpoint.program, /x \+ 1/);
  });
});

test("a killed process loses nothing: another one resumes the session and goes on", async () => {
  const place = folder();
  const first = startStdio(stdioArguments(place, [wrong, slow]));
  const before = connect(first.stream);
  await before.agent.request("initialize", hello());
  const { sessionId } = await before.agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
  before.agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { promptKey: "p1" } } }).catch(() => {});
  await before.until(({ update }) => update.sessionUpdate === "tool_call_update");
  first.child.kill("SIGKILL");
  await first.ended;
  const seen = followed(before.updates);

  const second = startStdio(stdioArguments(place, [right]));
  const after = connect(second.stream);
  try {
    await after.agent.request("initialize", hello());
    await after.agent.request("session/resume", { sessionId, cwd: "/tmp", mcpServers: [], _meta: { fixpoint: { lastSeq: seen } } });
    const end = await after.agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { promptKey: "p1" } } });
    assert.equal(end._meta.fixpoint.outcome, "solved");
    assert.equal(followed(after.updates, seen), end._meta.fixpoint.lastSeq);
    assert.deepEqual(before.checker.problems.concat(after.checker.problems), []);
  } finally {
    second.child.kill();
    await second.ended;
    place.remove();
  }
});
