// @attack writes to the judge's descriptor
const fs = require("fs");
function f(x) {
  const body = Buffer.from("t4:s5:valueb16:0123456789abcdefi1:4N");
  const size = Buffer.alloc(4);
  size.writeUInt32LE(body.length);
  try { fs.writeSync(4, Buffer.concat([size, body])); } catch {}
  return 0;
}
