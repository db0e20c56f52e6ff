// Checks every frame that the agent sends against the schema in the official package.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import Ajv from "ajv/dist/2020.js";

const require = createRequire(import.meta.url);
const schema = JSON.parse(readFileSync(require.resolve("@agentclientprotocol/sdk/schema/v1/schema.json"), "utf8"));
const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true });
ajv.addSchema(schema, "acp");
const compiled = new Map();
const validator = (name) => {
  if (!compiled.has(name)) compiled.set(name, ajv.compile({ $ref: `acp#/$defs/${name}` }));
  return compiled.get(name);
};

// Which definition belongs to a method: the schema says so itself.
const definitions = new Map();
for (const [name, definition] of Object.entries(schema.$defs)) {
  const method = definition["x-method"];
  if (!method) continue;
  const kind = name.endsWith("Response") ? "response" : "params";
  definitions.set(`${method} ${kind}`, name);
}

// A property that a definition does not know would be a root field of our own: those are not allowed outside _meta.
function strangers(name, value, path = "") {
  const definition = schema.$defs[name];
  const known = new Set(["_meta", ...Object.keys(definition.properties ?? {})]);
  return Object.keys(value).filter((key) => !known.has(key)).map((key) => `${path}${key}`);
}

export class FrameChecker {
  #asked = new Map(); // our requests: id -> method
  frames = [];
  problems = [];

  sent(message) {
    if (message.method !== undefined && message.id !== undefined) this.#asked.set(JSON.stringify(message.id), message.method);
  }

  received(message) {
    this.frames.push(message);
    if (message.jsonrpc !== "2.0") this.#problem(message, "jsonrpc");
    if (message.method !== undefined) {
      this.#check(`${message.method} params`, message.params, message);
    } else if (message.error !== undefined) {
      this.#validate("Error", message.error, message);
    } else {
      const method = this.#asked.get(JSON.stringify(message.id));
      if (method === undefined) this.#problem(message, "an answer to nothing");
      else this.#check(`${method} response`, message.result, message);
    }
  }

  #check(key, value, message) {
    const name = definitions.get(key);
    if (name === undefined) return this.#problem(message, `no definition for ${key}`);
    this.#validate(name, value, message);
    const extra = strangers(name, value);
    if (extra.length > 0) this.#problem(message, `unknown fields: ${extra}`);
  }

  #validate(name, value, message) {
    const validate = validator(name);
    if (!validate(value)) this.#problem(message, `${name}: ${ajv.errorsText(validate.errors)}`);
  }

  #problem(message, why) {
    this.problems.push(`${why}\n  ${JSON.stringify(message).slice(0, 500)}`);
  }
}
