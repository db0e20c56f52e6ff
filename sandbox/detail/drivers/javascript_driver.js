// Runs inside the jail: answers the judge's questions about a candidate, or runs given tests against one. See python_driver.py;
// the protocol and the trust (none) are the same.
"use strict";
const fs = require("fs");
const vm = require("vm");
const util = require("util");
const Module = require("module");
const makeRequire = Module.createRequire(__filename);

const QUESTIONS = 3;
const ANSWERS = 4;
const MAX_FRAME = 64 << 20;
const MAX_DEPTH = 190;
const MAX_ITEMS = 1000000;
const MAX_TEXT = 2000;
const readSync = fs.readSync;
const writeSync = fs.writeSync;
const inspect = util.inspect;

class Unserialisable extends Error {}
class Tuple {
  constructor(items) {
    this.items = items;
  }
}
const tuple = (...items) => new Tuple(items);

// ------------------------------------------------------------------------------------------------------------------ values

function encode(value) {
  const parts = [];
  let size = 0;
  const sized = (tag, bytes) => {
    size += bytes.length + 8;
    if (size > MAX_FRAME / 2) throw new Unserialisable("the value is too large");
    parts.push(Buffer.from(tag + bytes.length + ":", "latin1"), bytes);
  };
  const raw = (text) => parts.push(Buffer.from(text, "latin1"));
  const number = (v) => {
    if (Number.isInteger(v) && Math.abs(v) <= Number.MAX_SAFE_INTEGER && !Object.is(v, -0)) return sized("i", Buffer.from(String(v)));
    const text = Number.isNaN(v) ? "nan" : v === Infinity ? "inf" : v === -Infinity ? "-inf" : Object.is(v, -0) ? "-0.0" : String(v);
    sized("f", Buffer.from(text));
  };
  const list = (tag, items, depth) => {
    raw(tag + items.length + ":");
    for (const item of items) put(item, depth + 1);
  };
  const pairs = (entries, depth) => {
    raw("d" + entries.length + ":");
    for (const [key, item] of entries) {
      put(key, depth + 1);
      put(item, depth + 1);
    }
  };
  const put = (v, depth) => {
    if (depth > MAX_DEPTH) throw new Unserialisable("the value is nested too deeply");
    if (v === null) return raw("N");
    switch (typeof v) {
      case "undefined": return raw("U");
      case "boolean": return raw(v ? "T" : "F");
      case "number": return number(v);
      case "bigint": return sized("i", Buffer.from(v.toString()));
      case "string": return sized("s", Buffer.from(v, "utf8"));
      case "object": return object(v, depth);
      default: throw new Unserialisable("a " + typeof v + " is no plain value");
    }
  };
  const object = (v, depth) => {
    if (v instanceof Tuple) return list("t", v.items, depth);
    if (Buffer.isBuffer(v)) return sized("b", v);
    if (Array.isArray(v)) {
      if (v.length > MAX_ITEMS) throw new Unserialisable("the array is too long");
      return list("l", Array.from(v), depth);
    }
    if (v instanceof Set) return list("S", [...v], depth);
    if (v instanceof Map) return pairs([...v], depth);
    if (ArrayBuffer.isView(v)) return list("l", Array.from(v), depth);
    if (v instanceof Number || v instanceof String || v instanceof Boolean) return put(v.valueOf(), depth);
    if (v instanceof Date) {
      sized("n", Buffer.from("Date"));
      return number(v.getTime());
    }
    if (v instanceof RegExp || v instanceof Promise || v instanceof WeakMap) throw new Unserialisable("an object of class " + v.constructor.name + " is no plain value");
    return pairs(Object.keys(v).map((key) => [key, v[key]]), depth);
  };
  put(value, 0);
  return Buffer.concat(parts);
}

function decode(data) {
  let at = 0;
  const length = () => {
    const end = data.indexOf(58, at);
    const n = Number(data.toString("latin1", at, end));
    at = end + 1;
    return n;
  };
  const sized = () => {
    const n = length();
    at += n;
    return data.subarray(at - n, at);
  };
  const real = () => {
    const text = sized().toString();
    if (text === "inf" || text === "-inf") return text === "inf" ? Infinity : -Infinity;
    if (!/^-?0x/.test(text)) return text === "nan" ? NaN : Number(text);
    // A C hexadecimal float: [-]0xH.HHHp[+-]D
    const m = /^(-?)0x([0-9a-f]+)(?:\.([0-9a-f]*))?p([+-]?\d+)$/.exec(text);
    let v = parseInt(m[2], 16);
    const fraction = m[3] || "";
    for (let i = 0, scale = 1 / 16; i < fraction.length; i++, scale /= 16) v += parseInt(fraction[i], 16) * scale;
    // In two steps, so that a subnormal's scale is not lost.
    const exponent = Number(m[4]);
    v = exponent < -1000 ? v * 2 ** -1000 * 2 ** (exponent + 1000) : v * 2 ** exponent;
    return m[1] ? -v : v;
  };
  const many = () => Array.from({ length: length() }, value);
  function value() {
    const tag = String.fromCharCode(data[at++]);
    switch (tag) {
      case "N": return null;
      case "U": return undefined;
      case "T": return true;
      case "F": return false;
      case "i": {
        const text = sized().toString();
        const big = text.startsWith("-0x") ? -BigInt(text.slice(1)) : BigInt(text);
        const number = Number(big);
        return Number.isSafeInteger(number) ? number : big;
      }
      case "f": return real();
      case "c": at++; real(); at++; real(); throw new Error("no complex numbers here");
      case "D": return Number(sized().toString());
      case "s": return sized().toString("utf8");
      case "b": return Buffer.from(sized());
      case "l": case "t": return many();
      case "S": case "z": return new Set(many());
      case "d": {
        const entries = Array.from({ length: length() }, () => [value(), value()]);
        return entries.every(([key]) => typeof key === "string") ? Object.fromEntries(entries) : new Map(entries);
      }
      case "n": {
        const name = sized().toString();
        const content = value();
        return name === "Date" ? new Date(content) : content;
      }
      default: throw new Error("unknown tag " + tag);
    }
  }
  return value();
}

// ----------------------------------------------------------------------------------------------------------------- channel

class ProtocolEnd extends Error {}

function exactly(n) {
  const buffer = Buffer.allocUnsafe(n);
  let have = 0;
  while (have < n) {
    let got = 0;
    try {
      got = readSync(QUESTIONS, buffer, have, n - have, null);
    } catch (error) {
      if (error.code === "EAGAIN" || error.code === "EINTR") continue;
      throw error;
    }
    if (got === 0) throw new ProtocolEnd();
    have += got;
  }
  return buffer;
}

function receive() {
  const n = exactly(4).readUInt32LE(0);
  if (n > MAX_FRAME) throw new ProtocolEnd();
  return decode(exactly(n));
}

function send(message) {
  const body = encode(message);
  const data = Buffer.concat([Buffer.alloc(4), body]);
  data.writeUInt32LE(body.length, 0);
  let sent = 0;
  while (sent < data.length) {
    try {
      sent += writeSync(ANSWERS, data, sent, data.length - sent);
    } catch (error) {
      if (error.code !== "EAGAIN" && error.code !== "EINTR") throw error;
    }
  }
}

const capped = (text, limit = MAX_TEXT) => (text.length <= limit ? text : text.slice(0, limit) + "… (" + (text.length - limit) + " more characters)");

function safely(make) {
  try {
    return capped(String(make()));
  } catch (error) {
    return "<no text>";
  }
}

function framesOf(stack, sources) {
  const out = [];
  for (const line of stack.split("\n")) {
    const m = /^\s*at (?:(.*) \()?(?:async )?(?:file:\/\/)?([^():]*):(\d+):\d+\)?$/.exec(line);
    if (!m || !sources.has(m[2])) continue;
    const lines = sources.get(m[2]);
    const number = Number(m[3]);
    out.push(tuple(m[2], number, (m[1] || "").slice(0, 100), (lines[number - 1] || "").trim().slice(0, 200)));
  }
  return out.slice(0, 30).reverse();
}

function exceptionRecord(error, sources) {
  if (error === null || typeof error !== "object") return tuple("Error", ["Error"], safely(() => inspect(error)), []);
  const bases = [];
  try {
    for (let p = Object.getPrototypeOf(error); p && bases.length < 10; p = Object.getPrototypeOf(p)) {
      if (p.constructor && typeof p.constructor.name === "string") bases.push(p.constructor.name.slice(0, 100));
    }
  } catch (ignored) {}
  const stack = safely(() => error.stack);
  const where = /^(solution\.js|tests\.js):(\d+)/.exec(stack);  // a syntax error names its line at the top
  const frames = framesOf(stack, sources);
  if (frames.length === 0 && where) frames.push(tuple(where[1], Number(where[2]), "", ((sources.get(where[1]) || [])[where[2] - 1] || "").trim().slice(0, 200)));
  return tuple(safely(() => error.name || "Error").slice(0, 100), bases, safely(() => error.message), frames);
}

// --------------------------------------------------------------------------------------------------------------- candidate

const sources = new Map();
let resolve = null;

function load(source, fileName) {
  sources.set(fileName, source.split("\n"));
  const text = source.replace(/^export\s+(?:default\s+)?(?=(?:async\s+)?(?:function|class|const|let|var)\b)/gm, "");
  const module = { exports: {} };
  const body = vm.compileFunction(text + "\n;return (fixpoint_name) => eval(fixpoint_name);", ["exports", "require", "module"], { filename: fileName });
  const inner = body.call({}, module.exports, makeRequire, module);
  resolve = (name) => {
    if (!/^[A-Za-z_$][\w$.]*$/.test(name)) throw new ReferenceError(name + " is no name");
    try {
      return inner(name);
    } catch (error) {
      if (module.exports && name in module.exports) return module.exports[name];
      if (typeof module.exports === "function" && module.exports.name === name) return module.exports;
      throw error;
    }
  };
  resolve.inner = inner;
}

async function answer(question) {
  const [kind, nonce] = question;
  let reply;
  try {
    if (kind === "load") {
      load(question[2], question[3]);
      reply = tuple("value", nonce, null, null);
    } else if (kind === "call") {
      const [, , name, args, kwargs] = question;
      const f = resolve(name);
      if (typeof f !== "function") throw new TypeError(name + " is not a function");
      const given = Object.keys(kwargs).length > 0 ? [...args, kwargs] : args;
      let result = f(...given);
      if (result instanceof Promise) result = await result;
      reply = tuple("value", nonce, result, null);
      encode(reply);
    } else {
      throw new TypeError("no question " + kind);
    }
  } catch (error) {
    if (error instanceof ProtocolEnd) throw error;
    const record = error instanceof Unserialisable ? tuple("Unserialisable", [], error.message, []) : exceptionRecord(error, sources);
    reply = tuple("raise", nonce, record, null);
  }
  send(reply);
}

// ------------------------------------------------------------------------------------------------------------------- tests

let asserts = 0;

// node's assert, counted. The tests get this one whatever name they ask for it by.
function countedAssert() {
  const wrap = (original) =>
    new Proxy(original, {
      apply(target, self, args) {
        asserts++;
        return Reflect.apply(target, self, args);
      },
      get(target, name) {
        const v = target[name];
        return typeof v === "function" && name !== "AssertionError" && name !== "strict" ? wrap(v) : name === "strict" && v ? wrap(v) : v;
      },
    });
  return wrap(require("assert"));
}

function testRequire(assert) {
  return (name) => (["assert", "node:assert"].includes(name) ? assert : ["assert/strict", "node:assert/strict"].includes(name) ? assert.strict : makeRequire(name));
}

function remoteFunction(name) {
  return (...args) => {
    send(tuple("ask", "call", name, new Tuple(args), {}, false));
    const reply = receive();
    if (reply[0] === "value") return reply[1];
    const [className, , message] = reply[1];
    const base = { TypeError, RangeError, SyntaxError, ReferenceError }[className] || Error;
    const error = new base(message);
    if (base === Error) error.name = className;
    error.fixpointRecord = reply[1];
    throw error;
  };
}

async function runTests(question) {
  let [, text, fileName, entryPoint, , mode, source] = question;
  const assert = countedAssert();
  const require = testRequire(assert);
  const consoleAssert = (ok, ...rest) => assert.ok(ok, rest.length ? util.format(...rest) : undefined);
  let run;
  if (mode === "inside") {
    try {
      load(source, "solution.js");
    } catch (error) {
      return send(tuple("unloadable", exceptionRecord(error, sources)));
    }
    send(tuple("loaded"));
    text = receive()[1];
  }
  sources.set(fileName, text.split("\n"));
  console.assert = consoleAssert;
  if (mode === "inside") {
    // In the program's own scope, as if the tests stood below it.
    const scoped = resolve.inner("(fixpoint_text, require) => eval(fixpoint_text)");
    run = () => scoped(text + "\n//# sourceURL=" + fileName, require);
  } else {
    const wrong = () => ({ certainly: "wrong" });
    const f = mode === "stub" ? wrong : remoteFunction(entryPoint);
    let body;
    try {
      body = vm.compileFunction(text, ["require", "module", "exports", entryPoint], { filename: fileName });
    } catch (error) {
      return send(tuple("broken", exceptionRecord(error, sources)));
    }
    const module = { exports: {} };
    run = () => body.call({}, require, module, module.exports, f);
  }
  send(tuple("plan", "", false));
  if (receive()[0] !== "go") return;
  send(tuple("unit", 0, "the tests"));
  const nonce = receive()[1];
  let report = tuple("report", nonce, 0, "passed", "", "", "", null);
  try {
    const result = run();
    if (result instanceof Promise) await result;
  } catch (error) {
    if (error instanceof ProtocolEnd) throw error;
    const isAssert = error && error.code === "ERR_ASSERTION";
    const shown = (v) => safely(() => inspect(v, { depth: 6, breakLength: Infinity }));
    report = isAssert
      ? tuple("report", nonce, 0, "failed", safely(() => error.message), shown(error.actual), shown(error.expected), exceptionRecord(error, sources))
      : tuple("report", nonce, 0, "raised", safely(() => error.message), "", "", error && error.fixpointRecord ? asRecord(error.fixpointRecord) : exceptionRecord(error, sources));
  }
  send(report);
  send(tuple("done", 1, asserts));
}

const asRecord = ([name, bases, message, frames]) => tuple(name, bases, message, frames.map((frame) => new Tuple(frame)));

async function serve() {
  while (true) {
    const question = receive();
    if (question[0] === "end") {
      send(tuple("bye", question[1]));
      process.reallyExit(0);
    } else if (question[0] === "tests") {
      await runTests(question);
    } else {
      await answer(question);
    }
  }
}

serve().catch((error) => {
  if (!(error instanceof ProtocolEnd)) console.error(error);
  process.reallyExit(3);
});
