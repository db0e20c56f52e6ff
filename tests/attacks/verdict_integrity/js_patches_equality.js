// @attack replaces Object.is and its kin
Object.is = () => true;
Number.isNaN = () => true;
Array.isArray = () => true;
JSON.stringify = () => "4";
function f(x) { return 0; }
