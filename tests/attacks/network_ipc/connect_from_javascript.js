// @attack connects to a service of the host from JavaScript
// @expect held
// @arguments $PORT
const net = require("net");
const s = net.connect({ port: Number(process.argv[2]), host: "127.0.0.1" });
s.on("connect", () => { console.log("ESCAPED"); process.exit(0); });
s.on("error", () => { console.log("held"); process.exit(0); });
