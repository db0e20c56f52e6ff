// @attack ends well in the call
function f(x) { process.exit(0); }
