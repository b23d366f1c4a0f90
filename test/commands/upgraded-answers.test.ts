// The built commands against a server that answers 101 Switching Protocols: each ends with a word about it.
import { createServer } from 'node:net';
import { expect } from 'chai';
import { runProduct } from '../../lab/command.ts';
import { changed, writeFixture } from '../../lab/config-file.ts';
import { audience, token } from '../../lab/token.ts';
import { listen } from '../support/listen.ts';
import { useRunning } from '../support/use-running.ts';

describe('101 Switching Protocols', () => {
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Connection: upgrade', 'Upgrade: h2c', '', ''];
  const server = useRunning(async () => {
    const raw = createServer(socket => socket.on('error', () => undefined).write(lines.join('\r\n')));
    const url = `http://127.0.0.1:${await listen(raw)}`;
    return { url, stop: async () => void raw.close() };
  });

  for (const [args, code, said] of [
    ['explain --path /api/subscriptions', 4, /status 101 Switching Protocols/],
    ['verify URL', 1, /URL does not answer: status 101 Switching Protocols/],
    ['health', 1, /not reached: status 101 Switching Protocols/],
    ['drain --seconds 1 --envoy-admin URL', 0, /Envoy did not answer \(status 101\)/],
    ['check-config --envoy-admin URL', 1, /URL\/: status 101/],
  ] as const) {
    it(`ends \`${args}\` with ${code} and ${said}`, async () => {
      const { url } = server;
      const issuers = [{ issuer: url, audiences: [audience], jwksUrl: `${url}/jwks` }];
      const config = writeFixture('upgraded.json', changed({ issuers, admin: new URL(url).host }));
      const file = args.startsWith('drain') ? [] : ['--config', config];
      const input = await token({ claims: { iss: url } });
      const outcome = await runProduct([...args.replace('URL', url).split(' '), ...file], { input });
      expect(outcome.code).to.equal(code);
      expect((outcome.stdout + outcome.stderr).replaceAll(url, 'URL')).to.match(said);
    });
  }
});
