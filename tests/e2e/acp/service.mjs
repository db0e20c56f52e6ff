// Starts the program under test, with answers from a script instead of a model.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { client, ndJsonStream } from "@agentclientprotocol/sdk";
import { FrameChecker } from "./schema.mjs";

export const program = process.env.FIXPOINT;
if (!program) throw new Error("FIXPOINT names no program");

export const task = "Write `double(x)`: twice the number.\n\n# Tests\n\nassert double(2) == 4\nassert double(-3) == -6\n";
export const wrong = "Adding one is nearly it.\n```python\ndef double(x):\n    return x + 1\n```";
export const right = "It must be multiplied.\n```python\ndef double(x):\n    return 2 * x\n```";
export const slow = { text: right, delay_ms: 60_000 };

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "fixpoint-e2e-"));
  return { path, file: (name) => join(path, name), remove: () => rmSync(path, { recursive: true, force: true }) };
}

export function script(place, answers) {
  const file = place.file("answers.json");
  writeFileSync(file, JSON.stringify(answers));
  return file;
}

export function stdioArguments(place, answers, ...more) {
  return ["acp", "--script", script(place, answers), "--journal", place.file("journal.db"), ...more];
}

/// A stream that the checker listens to.
export function watched(stream, checker) {
  const incoming = new TransformStream({
    transform(message, controller) {
      checker.received(message);
      controller.enqueue(message);
    },
  });
  const outgoing = new TransformStream({
    transform(message, controller) {
      checker.sent(message);
      controller.enqueue(message);
    },
  });
  outgoing.readable.pipeTo(stream.writable).catch(() => {});
  return { readable: stream.readable.pipeThrough(incoming), writable: outgoing.writable };
}

/// A client made with the official SDK. `handlers`: what it answers to the agent's requests.
export function connect(stream, handlers = {}) {
  const checker = new FrameChecker();
  const updates = [];
  const waiting = [];
  let app = client({ name: "e2e" }).onNotification("session/update", ({ params }) => {
    updates.push(params);
    for (const wait of [...waiting]) {
      if (!wait.predicate(params)) continue;
      waiting.splice(waiting.indexOf(wait), 1);
      wait.resolve(params);
    }
  });
  for (const [method, answer] of Object.entries(handlers)) app = app.onRequest(method, ({ params }) => answer(params));
  const connection = app.connect(watched(stream, checker));
  const until = (predicate) => {
    const seen = updates.find(predicate);
    return seen ? Promise.resolve(seen) : new Promise((resolve) => waiting.push({ predicate, resolve }));
  };
  return { agent: connection.agent, connection, checker, updates, until };
}

export function startStdio(args) {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = new Promise((resolve) => child.on("exit", (code, signal) => resolve({ code, signal })));
  return { child, ended, stream: ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)) };
}

export const hello = (fs = {}) => ({
  protocolVersion: 1,
  clientCapabilities: { fs: { readTextFile: false, writeTextFile: false, ...fs }, terminal: false },
  clientInfo: { name: "e2e", version: "1" },
});
export const text = (words) => [{ type: "text", text: words }];

/// The story that a client has seen: numbers must follow each other without gap or repetition.
export function followed(updates, last = 0) {
  for (const { _meta } of updates) {
    const ours = _meta?.fixpoint;
    if (ours === undefined) continue;
    if ((ours.from ?? ours.seq) !== last + 1) throw new Error(`update ${ours.from ?? ours.seq} after ${last}`);
    last = ours.seq;
  }
  return last;
}
export const joined = (updates, kind) =>
  updates.filter(({ update }) => update.sessionUpdate === kind).map(({ update }) => update.content.text).join("");
