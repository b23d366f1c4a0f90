// A SPIRE of one trust domain with server, agent and discovery provider; /token answers with a JWT-SVID of this process's user.
import { execFile, spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, get } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';

const { URL: url, PORT, OTHER_PORT, DATA } = process.env;
const id = name => `spiffe://example.org/${name}`;
const common = 'trust_domain = "example.org"\nlog_level = "WARN"';
const address = `address = "127.0.0.1"`;
const plugins = 'NodeAttestor "join_token" { plugin_data {} }\nKeyManager "memory" { plugin_data {} }';
const files = {
  server: `server {
  ${common}\nbind_${address}\nbind_port = "${OTHER_PORT}"\nsocket_path = "${DATA}/server.sock"
  data_dir = "${DATA}/server"\njwt_issuer = "${url}/acme"
}
plugins { ${plugins}
  DataStore "sql" { plugin_data { database_type = "sqlite3" connection_string = "${DATA}/data.sqlite3" } }
}`,
  agent: `agent {
  ${common}\nserver_${address}\nserver_port = "${OTHER_PORT}"\nsocket_path = "${DATA}/agent.sock"
  data_dir = "${DATA}/agent"\ninsecure_bootstrap = true
}
plugins { ${plugins}
  WorkloadAttestor "unix" { plugin_data {} }
}`,
  provider: `log_level = "WARN"\ndomains = ["localhost"]\nallow_insecure_scheme = true
listen_socket_path = "${DATA}/provider.sock"\nserver_api { address = "unix://${DATA}/server.sock" }`,
};
for (const [name, text] of Object.entries(files)) writeFileSync(`${DATA}/${name}.conf`, text);
const start = (program, ...args) => spawn(program, args, { stdio: 'inherit' });
/** Repeated until it succeeds: the server starts, and the agent reads its entries every few seconds. */
async function ask(program, ...args) {
  const socket = ['-socketPath', `${DATA}/${program}.sock`];
  for (;;) {
    const answer = await promisify(execFile)(`./spire-${program}`, [...args, ...socket]).catch(() => undefined);
    if (answer !== undefined) return answer.stdout;
    await delay(500);
  }
}
start('./spire-server', 'run', '-config', `${DATA}/server.conf`);
const [, token] = /Token: (\S+)/.exec(await ask('server', 'token', 'generate', '-spiffeID', id('agent')));
const ids = ['-parentID', id('agent'), '-spiffeID', id('billing')];
await ask('server', 'entry', 'create', ...ids, '-selector', `unix:uid:${process.getuid()}`);
start('./spire-agent', 'run', '-config', `${DATA}/agent.conf`, '-joinToken', token);
start('./oidc-discovery-provider', '-config', `${DATA}/provider.conf`);
createServer(async ({ url: path }, response) => {
  if (path !== '/token') {
    const asked = { socketPath: `${DATA}/provider.sock`, path, headers: { host: 'localhost' } };
    return get(asked, answer => answer.pipe(response.writeHead(answer.statusCode))).on('error', () =>
      response.writeHead(503).end(),
    );
  }
  const audience = 'https://api.example.com';
  const [{ svids }] = JSON.parse(await ask('agent', 'api', 'fetch', 'jwt', '-audience', audience, '-output', 'json'));
  response.end(JSON.stringify({ access_token: svids[0].svid }));
}).listen(PORT, '127.0.0.1');
