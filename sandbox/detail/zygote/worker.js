'use strict';
// A Node process that is kept ready inside a sandbox of its own and used once. It waits on descriptor 3 for one line of JSON:
// {source, arguments, files: [{path, base64, executable}], environment: {name: value}}.
const fs = require('fs');
const path = require('path');
const Module = require('module');

function receive() {
  const chunks = [];
  const chunk = Buffer.alloc(65536);
  for (;;) {
    const size = fs.readSync(3, chunk, 0, chunk.length, null);
    if (size === 0) break;
    chunks.push(Buffer.from(chunk.subarray(0, size)));
  }
  return Buffer.concat(chunks);
}

const box = '/sandbox/box';
try {
  fs.writeSync(4, '\0');  // ready
} catch {
  // It was taken before it was.
}
const bytes = receive();
if (bytes.length === 0) process.exit(0);  // not needed any more
const job = JSON.parse(bytes.toString('utf8'));
fs.closeSync(3);
fs.closeSync(4);
for (const file of job.files) {
  const name = path.join(box, file.path);
  fs.mkdirSync(path.dirname(name), {recursive: true});
  fs.writeFileSync(name, Buffer.from(file.base64, 'base64'), {flag: 'wx', mode: file.executable ? 0o555 : 0o444});
}
for (const [name, value] of Object.entries(job.environment)) process.env[name] = value;
process.argv = [process.argv[0], path.join(box, 'main.js'), ...job.arguments];
Module.runMain();
