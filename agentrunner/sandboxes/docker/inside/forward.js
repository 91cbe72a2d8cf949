// Lets ports of a sandbox's loopback lead to Unix sockets: PORT:SOCKET ... Runs in the sandbox.
const net = require("net");

for (const door of process.argv.filter((word) => /^\d+:\//.test(word))) {
  const [, port, path] = /^(\d+):(.*)$/s.exec(door);
  const server = net.createServer({ allowHalfOpen: true }, (client) => {
    const target = net.connect({ path, allowHalfOpen: true });
    const end = () => {
      client.destroy();
      target.destroy();
    };
    client.on("error", end);
    target.on("error", end);
    client.pipe(target);
    target.pipe(client);
  });
  server.listen(Number(port), "127.0.0.1");
}
