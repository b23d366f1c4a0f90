// `npm run mcp`: the MCP clients of Python, fastmcp and Go sign in through the filters of docs/mcp.md and call a tool. Installs their SDKs once, which
// takes minutes, so it is no part of `npm test`.
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import { alice } from '../../demo/directory.ts';
import { jsonOf } from '../../demo/http-client.ts';
import { followAsBrowser, signIn } from '../../demo/oauth-client.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { installOnce } from '../../lab/programs.ts';
import { useRunning } from '../support/use-running.ts';
import { addPrintedFilters, startMcpParts } from './mcp-parts.ts';

const run = promisify(execFile);
const root = new URL('../../', import.meta.url);
const sources = fileURLToPath(new URL('test/fixtures/mcp/', root));
const sdkFolder = (name: string): string => fileURLToPath(new URL(`.cache/mcp/${name}`, root));

interface Sdk {
  readonly name: string;
  readonly install: (folder: string) => Promise<unknown>;
  readonly command: (folder: string) => readonly string[];
}

const python = (name: string, spec: string, program: string): Sdk => ({
  name,
  install: folder => run('python3', ['-m', 'pip', 'install', '--quiet', '--target', folder, spec]),
  command: folder => [`PYTHONPATH=${folder}`, 'python3', join(sources, program)],
});

const sdks: readonly Sdk[] = [
  python('python-2.3.0', 'mcp==2.3.0', 'client.py'),
  python('fastmcp-4.2.3', 'fastmcp==4.2.3', 'fastmcp-client.py'),
  {
    name: 'go-1.8.0',
    async install(folder) {
      const go = (...args: string[]) => run('go', args, { cwd: folder, env: { ...process.env, GOFLAGS: '-mod=mod' } });
      await copyFile(join(sources, 'client.go'), join(folder, 'client.go'));
      await go('mod', 'init', 'client');
      await go('get', 'github.com/modelcontextprotocol/go-sdk@v1.8.0');
      await go('build', '-o', 'client', '.');
    },
    command: folder => [join(folder, 'client')],
  },
];

describe('an MCP server behind the printed filters', () => {
  const parts = useRunning(() => startMcpParts(addPrintedFilters));

  for (const { name, install, command } of sdks) {
    it(`lets the SDK ${name} sign in and call a tool, knowing the URL alone`, async () => {
      const folder = sdkFolder(name);
      if (!existsSync(folder)) await installOnce(folder, install);
      const args = [...command(folder), parts.resource.href, 'http://127.0.0.1/callback', 'list_subscriptions'];
      const child = spawn('env', args, {
        env: { ...process.env, SSL_CERT_FILE: writeFixture('mcp-ca.pem', parts.ca) },
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      let answer = '';
      for await (const line of createInterface(child.stdout)) {
        if (line.startsWith('answer: ')) answer = line.slice('answer: '.length);
        if (!line.startsWith('sign in: ')) continue;
        const request = new URL(line.slice('sign in: '.length));
        const session = String(jsonOf(await signIn(request.origin, alice.name, alice.password)).session_token);
        child.stdin.write(`${(await followAsBrowser(request, session)).headers.location}\n`);
      }
      expect(answer).to.equal('user-alice of acme: basic, reports');
    });
  }
});
