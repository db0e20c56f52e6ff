// @attack takes memory in JavaScript
// @expect memory_limit | signal | exit
// @limits memory=96M cpu=8000
const all = [];
for (;;) all.push(new Array(100000).fill(1.5));
