// @attack makes node's assert pass
const assert = require("assert");
for (const name of Object.keys(assert)) {
  try { assert[name] = () => {}; } catch {}
}
function f(x) { return 0; }
