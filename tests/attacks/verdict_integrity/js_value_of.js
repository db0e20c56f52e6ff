// @attack returns an object that turns into anything
// @in-process may forge
function f(x) { return { valueOf: () => 2 * x, toString: () => String(2 * x), [Symbol.toPrimitive]: () => 2 * x }; }
