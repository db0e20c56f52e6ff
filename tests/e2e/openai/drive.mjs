// Drives `fixpoint serve` with the official openai client:  node drive.mjs FIXPOINT MODEL FOLDER
// FOLDER/node_modules holds the client. Ends with 0 when everything is as it should be.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

const [fixpoint, model, folder] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const { default: OpenAI } = require('openai');

const server = spawn(fixpoint, ['serve', '-m', model, '--model-name', 'tiny', '--listen', '127.0.0.1:0', '--log', '',
  '--kv-memory', '24M', '--threads', '1', '--journal', join(folder, 'journal.db')], { stdio: ['ignore', 'inherit', 'pipe'] });
const lines = createInterface({ input: server.stderr });
const address = await new Promise((resolve, reject) => {
  server.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
  lines.on('line', (line) => {
    const found = /listening on (http:\S+)/.exec(line);
    if (found) resolve(found[1]);
    else console.error(line);
  });
});

const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: 'none', maxRetries: 0 });
const messages = [{ role: 'system', content: 'Be brief.' }, { role: 'user', content: 'Write a function.' }];
const settings = { model: 'tiny', temperature: 0, max_tokens: 12, ignore_eos: true };

// Models
const models = [];
for await (const it of client.models.list()) models.push(it.id);
assert.deepEqual(models, ['tiny']);
assert.equal((await client.models.retrieve('tiny')).object, 'model');

// Chat, whole and streamed
const whole = await client.chat.completions.create({ ...settings, messages });
assert.equal(whole.choices[0].message.role, 'assistant');
assert.equal(whole.choices[0].finish_reason, 'length');
assert.equal(whole.usage.completion_tokens, 12);
const stream = await client.chat.completions.create({ ...settings, messages, stream: true, stream_options: { include_usage: true } });
let text = '', usage = null, reasons = [];
for await (const chunk of stream) {
  text += chunk.choices[0]?.delta?.content ?? '';
  if (chunk.choices[0]?.finish_reason) reasons.push(chunk.choices[0].finish_reason);
  if (chunk.usage) usage = chunk.usage;
}
assert.equal(text, whole.choices[0].message.content);
assert.deepEqual(reasons, ['length']);
assert.equal(usage.completion_tokens, 12);
assert.ok(usage.prompt_tokens_details.cached_tokens > 0, 'the second request of a conversation is served from the cache');

// The client's own stream helper puts the pieces together
const helper = client.chat.completions.stream({ ...settings, messages });
assert.equal((await helper.finalChatCompletion()).choices[0].message.content, text);

// Several choices, log-probabilities, a prediction
const several = await client.chat.completions.create({ ...settings, messages, n: 2, temperature: 1, seed: 5, logprobs: true, top_logprobs: 2 });
assert.equal(several.choices.length, 2);
assert.equal(several.choices[1].logprobs.content.length, 12);
assert.equal(several.choices[0].logprobs.content[0].top_logprobs.length, 2);
const predicted = await client.chat.completions.create({ ...settings, messages, prediction: { type: 'content', content: text } });
assert.equal(predicted.choices[0].message.content, text);

// Plain completions, whole and streamed
const completion = await client.completions.create({ ...settings, prompt: 'return the', stop: ['\u0000'] });
let streamed = '';
for await (const chunk of await client.completions.create({ ...settings, prompt: 'return the', stream: true })) streamed += chunk.choices[0].text;
assert.equal(streamed, completion.choices[0].text);

// Errors come as the client's own classes
await assert.rejects(client.chat.completions.create({ ...settings, model: 'other', messages }), OpenAI.NotFoundError);
await assert.rejects(client.chat.completions.create({ ...settings, messages, temperature: 9 }), (error) => error instanceof OpenAI.BadRequestError && error.param === 'temperature');
await assert.rejects(client.chat.completions.create({ ...settings, messages: [{ role: 'user', content: 'x'.repeat(200_000) }] }),
  (error) => error instanceof OpenAI.BadRequestError && error.code === 'context_length_exceeded');

// Leaving a stream stops the work behind it
const endless = await client.chat.completions.create({ ...settings, messages, max_tokens: 60_000, stream: true });
for await (const chunk of endless) if (chunk.choices[0]?.delta?.content) break;
const deadline = Date.now() + 30_000;
for (let running = 1; running > 0;) {
  const metrics = await (await fetch(`${address}/metrics`)).text();
  running = Number(/num_requests_running\{[^}]*\} (\d+)/.exec(metrics)[1]);
  assert.ok(Date.now() < deadline, 'the engine goes on after the client has left');
}

server.kill('SIGTERM');
const [code] = await once(server, 'exit');
assert.equal(code, 0);
console.log('openai client: all is as it should be');
process.exit(0);
