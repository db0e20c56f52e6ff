// The official SDK over its WebSocket stream, against `fixpoint serve`; and `fixpoint acp --url` as a bridge to it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { createWebSocketStream } from "@agentclientprotocol/sdk/experimental/ws-client";
import { WebSocket } from "ws";
import { connect, folder, followed, hello, joined, program, right, script, slow, startStdio, task, text, wrong } from "./service.mjs";

function arguments_(place, answers, listen) {
  return ["serve", "--listen", listen, "--script", script(place, answers), "--journal", place.file("journal.db"), "--log", place.file("log")];
}

/// Starts the server and waits for its address.
async function serve(place, answers, listen = "127.0.0.1:0") {
  const child = spawn(program, arguments_(place, answers, listen), { stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise((resolve) => child.on("exit", resolve));
  const address = await new Promise((resolve, reject) => {
    const words = [];
    createInterface({ input: child.stderr }).on("line", (line) => {
      words.push(line);
      const found = /listening on http:\/\/(\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
    child.on("exit", () => reject(new Error(`the server ended: ${words.join("\n")}`)));
  });
  return { child, ended, address, url: `ws://${address}/acp` };
}

async function withServer(answers, use) {
  const place = folder();
  const server = await serve(place, answers);
  try {
    await use(server, place);
  } finally {
    server.child.kill("SIGKILL");
    await server.ended;
    place.remove();
  }
}

/// A client whose socket can be cut.
function client(url, handlers) {
  let socket;
  class Kept extends WebSocket {
    constructor(...given) {
      super(...given);
      socket = this;
    }
  }
  const it = connect(createWebSocketStream(url, { WebSocket: Kept }), handlers);
  return { ...it, cut: () => socket.terminate(), close: () => socket.close() };
}

test("a whole session over WebSocket", async () => {
  await withServer([wrong, right], async ({ url }) => {
    const { agent, updates, checker, close } = client(url);
    await agent.request("initialize", hello());
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const end = await agent.request("session/prompt", { sessionId, prompt: text(task) });
    assert.equal(end.stopReason, "end_turn");
    assert.match(joined(updates, "agent_message_chunk"), /return 2 \* x/);
    assert.equal(followed(updates), end._meta.fixpoint.lastSeq);
    assert.deepEqual(checker.problems, []);
    close();
  });
});

test("cancel over WebSocket", async () => {
  await withServer([slow], async ({ url }) => {
    const { agent, until, checker, close } = client(url);
    await agent.request("initialize", hello());
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const prompt = agent.request("session/prompt", { sessionId, prompt: text(task) });
    await until(({ update }) => update.sessionUpdate === "plan");
    await agent.notify("session/cancel", { sessionId });
    assert.equal((await prompt).stopReason, "cancelled");
    assert.deepEqual(checker.problems, []);
    close();
  });
});

test("a cut socket: the work goes on, and resume tells the rest exactly once", async () => {
  await withServer([{ text: wrong, delay_ms: 300 }, { text: right, delay_ms: 300 }], async ({ url }) => {
    const first = client(url);
    await first.agent.request("initialize", hello());
    const { sessionId } = await first.agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    first.agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { promptKey: "p1" } } }).catch(() => {});
    await first.until(({ update }) => update.sessionUpdate === "plan");
    first.cut();
    const seen = first.updates.at(-1)._meta.fixpoint.seq;

    const second = client(url);
    await second.agent.request("initialize", hello());
    await second.agent.request("session/resume", { sessionId, cwd: "/tmp", mcpServers: [], _meta: { fixpoint: { lastSeq: seen } } });
    const end = await second.agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { promptKey: "p1" } } });
    assert.equal(end._meta.fixpoint.outcome, "solved");
    assert.equal(followed(second.updates, seen), end._meta.fixpoint.lastSeq);

    const whole = client(url);
    await whole.agent.request("initialize", hello());
    await whole.agent.request("session/load", { sessionId, cwd: "/tmp", mcpServers: [] });
    followed(whole.updates);
    assert.equal(joined(whole.updates, "agent_thought_chunk"), joined([...first.updates, ...second.updates], "agent_thought_chunk"));
    for (const { checker } of [first, second, whole]) assert.deepEqual(checker.problems, []);
    second.close();
    whole.close();
  });
});

test("a server that is killed and started again goes on with the session", async () => {
  const place = folder();
  const before = await serve(place, [wrong, slow]);
  const first = client(before.url);
  await first.agent.request("initialize", hello());
  const { sessionId } = await first.agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
  first.agent.request("session/prompt", { sessionId, prompt: text(task) }).catch(() => {});
  await first.until(({ update }) => update.sessionUpdate === "tool_call_update");
  before.child.kill("SIGKILL");
  await before.ended;
  const seen = first.updates.at(-1)._meta.fixpoint.seq;
  const after = await serve(place, [right]);
  const second = client(after.url);
  try {
    await second.agent.request("initialize", hello());
    await second.agent.request("session/resume", { sessionId, cwd: "/tmp", mcpServers: [], _meta: { fixpoint: { lastSeq: seen } } });
    const last = await second.until(({ update }) => update._meta?.fixpoint?.turnEnded);
    assert.equal(last.update._meta.fixpoint.turnEnded.outcome, "solved");
    followed(second.updates, seen);
  } finally {
    second.close();
    after.child.kill("SIGKILL");
    await after.ended;
    place.remove();
  }
});

test("permission over WebSocket", async () => {
  const handlers = { "session/request_permission": () => ({ outcome: { outcome: "selected", optionId: "take_best" } }) };
  await withServer([wrong], async ({ url }) => {
    const { agent, checker, close } = client(url, handlers);
    await agent.request("initialize", hello());
    const { sessionId } = await agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const end = await agent.request("session/prompt", { sessionId, prompt: text(task), _meta: { fixpoint: { budget: { rounds: 0 } } } });
    assert.equal(end.stopReason, "end_turn");
    assert.match(end._meta.fixpoint.program, /x \+ 1/);
    assert.deepEqual(checker.problems, []);
    close();
  });
});

test("the bridge: an editor over stdio, a server over WebSocket, killed in between", async () => {
  const place = folder();
  let server = await serve(place, [wrong, slow]);
  const bridge = startStdio(["acp", "--url", server.url]);
  const editor = connect(bridge.stream);
  try {
    await editor.agent.request("initialize", hello());
    const { sessionId } = await editor.agent.request("session/new", { cwd: "/tmp", mcpServers: [] });
    const prompt = editor.agent.request("session/prompt", { sessionId, prompt: text(task) });
    await editor.until(({ update }) => update.sessionUpdate === "tool_call_update");
    server.child.kill("SIGKILL");
    await server.ended;
    server = await serve(place, [right], server.address);
    assert.equal((await prompt).stopReason, "end_turn");
    followed(editor.updates);
    assert.deepEqual(editor.checker.problems, []);
  } finally {
    bridge.child.kill();
    await bridge.ended;
    server.child.kill("SIGKILL");
    await server.ended;
    place.remove();
  }
});
