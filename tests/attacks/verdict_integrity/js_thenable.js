// @attack returns a promise that never settles
function f(x) { return new Promise(() => {}); }
