// The client of compose.yaml finds the process of account-authz by the command line of the image and compose.yaml, with any flags.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { authorizerPids, isAuthorizer } from '../../demo/authorizer-process.ts';
import type { ComposeFile } from '../deploy/image/compose-file.ts';
import { execForm, lastOf, parseDockerfile, product } from '../support/dockerfile.ts';

const read = (name: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../${name}`, import.meta.url)), 'utf8');
const { stages } = parseDockerfile(await read('Dockerfile'));
const stage = stages.find(({ name }) => name === product);
const wordsOf = (name: string): readonly string[] => execForm(lastOf(stage, name)) ?? [];
const { services }: ComposeFile = parse(await read('compose.yaml'), { merge: true });
const entrypoint = wordsOf('ENTRYPOINT');
const [node = '', ...flagsAndScript] = entrypoint;
const script = entrypoint.at(-1) ?? '';
/** The default of `--authorizer` of the client. */
const [, searched = ''] =
  /authorizer: \{ type: 'string', default: '(.+?)' \}/.exec(await read('demo/compose-client.ts')) ?? [];

describe('the process of account-authz, for the client of compose.yaml', () => {
  for (const { name, command } of [
    { name: 'the ENTRYPOINT and CMD of the image', command: [...entrypoint, ...wordsOf('CMD')] },
    {
      name: 'the ENTRYPOINT and the command of compose.yaml',
      command: [...entrypoint, ...(services['account-authz']?.command ?? [])],
    },
    { name: 'the ENTRYPOINT alone, as serve is the default', command: entrypoint },
    { name: 'no flag', command: [node, script, 'serve'] },
    { name: 'another flag', command: [node, '--max-old-space-size=150', script, 'serve'] },
    { name: 'a flag before those of the image', command: [node, '--enable-source-maps', ...flagsAndScript, 'serve'] },
    {
      name: 'a flag with a value of its own',
      command: [node, '--require', '/otel/start.js', ...flagsAndScript, 'serve'],
    },
    { name: 'the end of the flags', command: [node, '--', script, 'serve'] },
    { name: 'no command, but its options', command: [...entrypoint, '--config', '/etc/account-authz/config.yaml'] },
    { name: 'another Node', command: ['node26', script, 'serve'] },
  ])
    it(`is found with ${name}`, () => {
      expect(isAuthorizer(command, searched)).to.equal(true);
    });

  for (const { name, command } of [
    { name: 'the health check', command: wordsOf('HEALTHCHECK') },
    { name: 'the health check of compose.yaml', command: services['account-authz']?.healthcheck?.test.slice(1) ?? [] },
    { name: 'the health check with the flags of the image', command: [...entrypoint, 'health'] },
    { name: 'another command', command: [...entrypoint, 'check-config', '--config', 'serve'] },
    { name: 'the init process of Docker', command: ['/sbin/docker-init', '--', ...entrypoint, ...wordsOf('CMD')] },
    { name: 'the init process of Podman', command: ['/run/podman-init', '--', ...entrypoint, ...wordsOf('CMD')] },
    { name: 'the client', command: [node, ...(services.client?.command ?? [])] },
    { name: 'a script that gets the other as an option', command: [node, 'demo/x.ts', '--authorizer', script] },
    {
      name: 'a script that gets the other behind flags',
      command: [node, '--import', 'tsx', 'demo/x.ts', script, 'serve'],
    },
    { name: 'another script', command: [node, 'demo/serve.ts', 'serve'] },
    { name: 'a thread of the kernel', command: [] },
  ])
    it(`is not mistaken for ${name}`, () => {
      expect(isAuthorizer(command, searched)).to.equal(false);
    });

  it('is found running, with the flags of the image', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'authorizer-process-'));
    const running = join(folder, 'main.js');
    await writeFile(running, "process.stdin.on('end', () => process.exit()).resume(); console.log('started');\n");
    const args = [...flagsAndScript.slice(0, -1), running];
    const serving = spawn(process.execPath, [...args, ...wordsOf('CMD')]);
    const checking = spawn(process.execPath, [...args, 'health']);
    try {
      await Promise.all([once(serving.stdout, 'data'), once(checking.stdout, 'data')]);
      expect(await authorizerPids(running)).to.deep.equal([serving.pid]);
      const closed = once(serving, 'close');
      serving.stdin.end();
      await closed;
      expect(await authorizerPids(running)).to.deep.equal([]);
    } finally {
      for (const child of [serving, checking]) child.kill();
      await rm(folder, { recursive: true, force: true });
    }
  });
});
