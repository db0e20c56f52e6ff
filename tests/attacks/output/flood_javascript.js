// @attack prints without end in JavaScript
// @expect output_limit
// @limits output=100K
for (;;) require("fs").writeSync(1, "x".repeat(1000));
