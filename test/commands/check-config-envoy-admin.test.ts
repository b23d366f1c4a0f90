// check-config --envoy-admin: answers that are no dump, and URLs that are refused. e2e/check-config-dump.test.ts has real Envoys.
import { createServer, type RequestListener, type Server } from 'node:http';
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { listen } from '../support/listen.ts';
import { exampleFile } from '../toolkit/lint/shipped.ts';

const check = (...args: readonly string[]) => runCommand('check-config', ['--config', exampleFile, ...args]);

describe('check-config --envoy-admin', () => {
  const servers: Server[] = [];
  after(() => {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  });

  /** An admin interface that answers so. */
  async function fakeAdmin(answer: RequestListener): Promise<string> {
    const server = createServer(answer);
    servers.push(server);
    return `http://127.0.0.1:${await listen(server)}`;
  }

  const refused: readonly (readonly [name: string, answer: RequestListener, problem: RegExp])[] = [
    ['an error', (_, answer) => answer.writeHead(503).end('x'), /: it answers 503 \[unreadable-file\]$/],
    ['a redirect', (_, to) => to.writeHead(302, { location: '/' }).end(), /: it answers 302 \[unreadable-file\]$/],
    [
      'something else than JSON',
      (_, answer) => answer.end('<p>hello'),
      /: it is no JSON that can be read: not JSON \[unreadable-file\]$/,
    ],
    ['a key twice', (_, answer) => answer.end('{"configs":[],"configs":[]}'), /: a member twice \[unreadable-file\]$/],
    ['nothing that is a dump', (_, answer) => answer.end('{}'), /: .*\[nothing-checked\]$/],
    [
      'more than 16 MiB',
      (_, answer) => {
        const chunk = Buffer.alloc(1024 * 1024, ' ');
        const write = (): void => {
          while (answer.write(chunk));
          answer.once('drain', write);
        };
        write();
      },
      /: its answer is longer than 16777216 bytes \[unreadable-file\]$/,
    ],
  ];
  for (const [name, answer, problem] of refused) {
    it(`exits 1 for an admin interface that answers ${name}`, async () => {
      const admin = await fakeAdmin(answer);
      const { code, stdout, stderr } = await check('--envoy-admin', admin);
      expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
      const [first = ''] = stderr.split('\n');
      expect(first).to.match(problem);
      expect(first.startsWith(`${admin}/: `)).to.equal(true);
    });
  }

  it('asks for the dump with its endpoints, and through no proxy', async () => {
    const paths: string[] = [];
    const admin = await fakeAdmin((request, answer) => {
      paths.push(`${request.method} ${request.url}`);
      answer.end('{}');
    });
    await check('--envoy-admin', admin);
    expect(paths).to.deep.equal(['GET /config_dump?include_eds']);
  });

  const urls = ['http://192.0.2.7:9901', 'http://user:secret@127.0.0.1:9901', 'ftp://127.0.0.1', '127.0.0.1:9901', ''];
  for (const url of urls) {
    it(`refuses ${url === '' ? 'an empty URL' : url.replace('secret', '…')} as --envoy-admin`, async () => {
      const { code, stderr } = await check(`--envoy-admin=${url}`);
      expect(code).to.equal(1);
      expect(stderr).to.equal(
        'account-authz check-config: --envoy-admin must be a URL such as http://127.0.0.1:9901: https, or http to a loopback address\n',
      );
    });
  }

  it('refuses --envoy together with --envoy-admin', async () => {
    const { code, stderr } = await check('--envoy', 'x', '--envoy-admin', 'http://127.0.0.1:9901');
    expect(code).to.equal(1);
    expect(stderr).to.match(/--envoy and --envoy-admin exclude each other\n$/);
  });
});
