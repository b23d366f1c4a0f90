// `npm run demo` and the client of compose.yaml as processes: every step is as expected, and nothing keeps running.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parse } from 'yaml';
import { send } from '../../demo/http-client.ts';
import { killAtExit } from '../../lab/child-process.ts';
import { type Program, programArguments } from '../../lab/compiled.ts';
import { allPages } from '../../lab/document.ts';
import { startEnvoy } from '../../lab/envoy.ts';
import { freePorts } from '../../lab/free-ports.ts';
import { secrets } from '../../lab/secrets.ts';
import { startServiceProcess } from '../../lab/service-process.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

interface Run {
  readonly child: ChildProcess;
  readonly exited: Promise<number>;
  output(): string;
  /** Resolves once the output contains the text; rejects if the run ends without it. */
  shows(text: string): Promise<void>;
}

function start(program: Program, ...args: readonly string[]): Run {
  const child = spawn(process.execPath, [...programArguments(program), ...args], { cwd: project, stdio: 'pipe' });
  killAtExit(child);
  let output = '';
  const exited = once(child, 'close').then(([code]) => {
    secrets.show('demo', output);
    return Number(code);
  });
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  return {
    child,
    exited,
    output: () => output,
    async shows(text) {
      const over = exited.then(code => Promise.reject(new Error(`exited with ${code}:\n${output}`)));
      over.catch(() => undefined);
      while (!output.includes(text)) await Promise.race([once(child.stdout, 'data'), over]);
    },
  };
}

async function expectNothingAt(output: string): Promise<void> {
  const origins = [...new Set(output.match(/http:\/\/127\.0\.0\.1:\d+/g))];
  expect(origins.length).to.be.greaterThan(3);
  const attempts = origins.map(origin => send({ origin, target: '/' }).catch(({ code }) => code));
  expect(new Set(await Promise.all(attempts))).to.deep.equal(new Set(['ECONNREFUSED']));
}

describe('npm run demo', function () {
  this.timeout(300_000);
  let run: Run;

  before(async () => {
    run = start('demo/main.ts', '--stay');
    await run.shows('Everything stays up until Ctrl-C');
  });
  after(() => run.child.kill('SIGKILL'));

  it('has every step as expected', () => {
    expect(run.output()).to.match(/^(\d+) of \1 steps as expected$/m);
    expect(run.output()).to.not.match(/^ *FAIL/m);
  });

  it('prints the lines that the README shows, in their order', () => {
    const readme = allPages().find(({ path }) => path === 'README.md');
    const block = readme?.blocks.find(({ text }) => text.includes('npm run demo'))?.text ?? '';
    const lines = run.output().split('\n');
    const shown = block
      .trimEnd()
      .split('\n')
      .filter(line => !/^\$ |…$/.test(line));
    const places = shown.map(line => lines.indexOf(line));
    expect(places).to.have.length.of.at.least(5);
    expect(places).to.not.include(-1);
    expect(places).to.deep.equal(places.toSorted((a, b) => a - b));
  });

  it('prints no token, and no colour to a pipe', () => {
    expect(run.output()).to.not.match(/eyJ[\w-]+\.[\w-]+\./);
    expect(run.output()).to.not.include('\x1b');
  });

  it('stops all parts on SIGTERM', async () => {
    run.child.kill('SIGTERM');
    expect(await run.exited).to.equal(0);
    await expectNothingAt(run.output());
  });
});

describe('the client of compose.yaml', function () {
  this.timeout(120_000);

  it('exits with 0 after every step that docs/deploy/compose.md promises', async () => {
    const stops: (() => Promise<unknown>)[] = [];
    const origin = (port: number): string => `http://127.0.0.1:${port}`;
    const [issuer = 0, partner = 0, minting = 0, app = 0, requests = 0] = await freePorts(5);
    const part = async (name: string, listen: number, control: number, ...more: readonly string[]): Promise<void> => {
      const at = ['--listen', `127.0.0.1:${listen}`, '--control', `127.0.0.1:${control}`];
      const { child, exited, shows } = start('demo/serve.ts', name, ...at, ...more);
      stops.push(() => {
        child.kill('SIGTERM');
        return exited.then(code => expect(code, name).to.equal(0));
      });
      await shows('serving');
    };
    try {
      await part('authentication-service', issuer, minting, '--partner', `127.0.0.1:${partner}`);
      await part('upstream', app, requests);
      const text = readFileSync(`${project}demo/compose/account-authz/config.yaml`, 'utf8');
      const moved = text.replaceAll(':8090', `:${issuer}`).replaceAll(':8092', `:${partner}`);
      const service = await startServiceProcess({ ...parse(moved), listen: '127.0.0.1:0', admin: '127.0.0.1:0' });
      stops.push(() => service.stop());
      const envoy = await startEnvoy({ authz: service.address, upstream: app });
      stops.push(() => envoy.stop());
      const at = ['--gateway', origin(envoy.port), '--authentication', origin(minting), '--upstream', origin(requests)];
      const client = start('demo/compose-client.ts', ...at);
      expect(await client.exited, client.output()).to.equal(0);
      const page = readFileSync(`${project}docs/deploy/compose.md`, 'utf8');
      const [promised = ''] = /\d+ of \d+ steps as expected/.exec(page) ?? [];
      expect(client.output().trimEnd().split('\n').at(-1)).to.equal(promised);
    } finally {
      for (const stop of stops.toReversed()) await stop();
    }
  });

  it('exits with 1 if nothing listens', async () => {
    const [port] = await freePorts(1);
    const client = start('demo/compose-client.ts', '--authentication', `http://127.0.0.1:${port}`);
    expect(await client.exited).to.equal(1);
    expect(client.output()).to.include('ECONNREFUSED');
  });
});
