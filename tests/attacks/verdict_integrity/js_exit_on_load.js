// @attack ends well while it is loaded
process.exit(0);
function f(x) { return 0; }
