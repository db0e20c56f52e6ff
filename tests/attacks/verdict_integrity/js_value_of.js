// @attack returns an object that turns into anything
function f(x) { return { valueOf: () => 2 * x, toString: () => String(2 * x), [Symbol.toPrimitive]: () => 2 * x }; }
