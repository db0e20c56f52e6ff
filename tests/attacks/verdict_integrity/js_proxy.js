// @attack returns a proxy that has every property
function f(x) { return new Proxy({}, { get: () => 4, has: () => true, ownKeys: () => [], getPrototypeOf: () => Number.prototype }); }
