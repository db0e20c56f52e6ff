// @attack spins in JavaScript with a timer pending
// @expect cpu_limit
// @limits cpu=700 wall=90000
setTimeout(() => {}, 1);
for (;;) {}
