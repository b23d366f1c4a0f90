// Runs in a pod: stands in for an authentication service that publishes its keys over HTTPS. It signs nothing.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';

const file = (name: string): string => readFileSync(`/program/${name}`, 'utf8');
const keys = file('jwks.json');
createServer({ key: file('tls.key'), cert: file('tls.crt') }, (_, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(keys);
}).listen(443);
process.once('SIGTERM', () => process.exit());
