// @attack takes memory in JavaScript
// @expect memory_limit | signal | exit
// @expect(user) memory_limit | signal | exit | cpu_limit
// @expect(no_cgroups) memory_limit | signal | exit | cpu_limit
// @limits memory=96M cpu=8000
const all = [];
for (;;) all.push(new Array(100000).fill(1.5));
