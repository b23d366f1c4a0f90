// Uncaught errors in the built product: it logs the error and exits 2 at once, whatever handles are open.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { builtFile } from '../../lab/built.ts';
import { runProduct } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { secrets } from '../../lab/secrets.ts';
import { connect, type GrpcClient } from '../../lab/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { until } from '../../lab/until.ts';
import { useRunning } from '../support/use-running.ts';
import { configuration, startIssuer } from './lab.ts';

/** Node options that preload this module, together with an open server that keeps any process alive. */
function preloaded(name: string, text: string): { readonly nodeOptions: readonly string[] } {
  const open = "import { createServer } from 'node:net'; createServer().listen(0, '127.0.0.1');";
  return { nodeOptions: ['--import', writeFixture(`${name}.mjs`, `${open}\n${text}`)] };
}

/** Runs the code on SIGUSR2, from the event loop. */
function onSignal(name: string, code: string): { readonly nodeOptions: readonly string[] } {
  const imports = "import { writeSync } from 'node:fs';";
  return preloaded(name, `${imports} process.on('SIGUSR2', () => setImmediate(() => { ${code} }));`);
}

/** Makes a method of Node throw when this function calls it. The built product keeps function names. */
function throwingIn(name: string, caller: string, holder: string, method: string, imports = '') {
  return preloaded(
    name,
    `${imports}
    import { syncBuiltinESMExports } from 'node:module';
    const { ${method}: original } = ${holder};
    ${holder}.${method} = function (...parameters) {
      if (/\\b${caller}\\b/.test(new Error().stack)) throw new TypeError('a secret');
      return original.apply(this, parameters);
    };
    syncBuiltinESMExports();`,
  );
}

describe('uncaught error', () => {
  const issuer = useRunning(startIssuer);
  let service: ServiceProcess;
  let client: GrpcClient;

  it('ends a command that waits for what can no longer come, with 2 and a line', async () => {
    const stdin =
      "Object.defineProperty(process, 'stdin', { value: { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) } });";
    const config = writeFixture('waiting.json', configuration(issuer.jwksUrl));
    const nodeOptions = ['--import', `data:text/javascript,${encodeURIComponent(stdin)}`];
    const { code, stderr } = await runProduct(['explain', '--config', config, '--path', '/api'], { nodeOptions });
    expect([code, stderr]).to.deep.equal([2, 'account-authz explain: internal error: nothing is left to wait for\n']);
  });

  describe('while serving', () => {
    const start = async (options: Parameters<typeof startServiceProcess>[1], changes = {}): Promise<void> => {
      service = await startServiceProcess({ ...configuration(issuer.jwksUrl), ...changes }, options);
      client = connect(service.address);
      await client.health('');
    };
    const faultLines = (): unknown => {
      expect(JSON.stringify(service.log()) + service.errorLog()).to.not.contain('a secret');
      return service.log().filter(({ msg }) => msg === 'fault');
    };
    afterEach(async () => {
      client.close();
      await service.kill();
    });

    // Seen with more problems than a call takes arguments: whatever a file makes validation throw, the service goes on.
    it('does not occur where a changed configuration makes its validation throw, which refuses it', async () => {
      const faulty = "globalThis.TextDecoder = class { decode() { throw new TypeError('a secret'); } };";
      await start(onSignal('validation', faulty));
      process.kill(service.pid, 'SIGUSR2');
      await service.configure({ ...configuration(issuer.jwksUrl), apps: ['other'] });
      await until(() => service.log().some(({ msg }) => msg === 'configuration refused, the old one stays in effect'));
      expect(faultLines()).to.have.lengthOf(1).and.have.nested.property('[0].level', 'error');
      await client.health('');
    });

    for (const [kind, code, fault] of [
      ['an exception', "throw new TypeError('a secret')", { name: 'TypeError' }],
      ['a lost rejection', "Promise.reject(Object.assign(new Error('a secret'), { code: 'E_X' }))", { code: 'E_X' }],
      ['an unhandled rejection without a reason', 'Promise.reject()', { name: 'undefined' }],
      [
        'a rejection and an exception at once',
        "Promise.reject(new SyntaxError()); throw new TypeError('a secret')",
        { name: 'TypeError' },
      ],
    ] as const) {
      it(`exits 2 and logs one fatal line last after ${kind}`, async () => {
        await start(onSignal('signal', code));
        process.kill(service.pid, 'SIGUSR2');
        expect(await service.exitCode()).to.equal(2);
        expect(faultLines()).to.have.lengthOf(1).and.have.nested.property('[0].level', 'fatal');
        expect(service.log().at(-1)?.fault).to.include(fault);
      });
    }

    it('exits 2 during graceful shutdown', async () => {
      await start(onSignal('signal', 'throw new Error()'), { shutdown: { graceSeconds: 60 } });
      process.kill(service.pid, 'SIGTERM');
      await until(() => service.log().some(({ msg }) => msg === 'stopping'));
      process.kill(service.pid, 'SIGUSR2');
      expect(await service.exitCode()).to.equal(2);
    });

    it('exits 2 in a reload, outside its error handling', async () => {
      await start(throwingIn('reload', 'forgetIssuers', 'Array.prototype', 'flatMap'));
      await service.configure({ ...configuration(issuer.jwksUrl), apps: ['other'] });
      expect(await service.exitCode()).to.equal(2);
      expect(faultLines()).to.have.nested.property('[0].fault.name', 'TypeError');
    });

    const fill = "try { for (;;) writeSync(1, ' '.repeat(4096)); } catch {} throw new Error();";
    for (const [log, code] of [
      ['open', fill],
      ['closed', 'throw new Error()'],
    ] as const) {
      it(`exits 2 when nobody reads the log: ${log}`, async () => {
        await start(onSignal(log, code));
        service.leaveLog(log);
        process.kill(service.pid, 'SIGUSR2');
        expect(await service.exited()).to.equal(2);
      });
    }
  });

  describe('during the start', () => {
    const run = async (preload: { readonly nodeOptions: readonly string[] }) => {
      const file = writeFixture('start.json', configuration(issuer.jwksUrl));
      const { code, stdout, stderr } = await runProduct(['serve', '--config', file], preload);
      return { code, output: stdout + stderr };
    };

    it('exits 2 after an exception', async () => {
      const throwOnce = `const timer = setInterval(() => {
        if (process.listenerCount('uncaughtException') > 0) { clearInterval(timer); throw new TypeError('a secret'); }
      }, 1);`;
      const { code, output } = await run(preloaded('early', throwOnce));
      expect(code).to.equal(2);
      expect(output).to.contain('"msg":"fault"').and.contain('TypeError').and.not.contain('a secret');
    });

    for (const [where, caller, imports, method] of [
      ['reading the file', 'readSlices', "import module from 'node:fs/promises';", 'open'],
      ['starting the file watch, after everything else is open', 'watchConfig', 'const module = Map.prototype;', 'set'],
    ] as const) {
      it(`exits 2 after an error in ${where}`, async () => {
        const preload = throwingIn('start', caller, 'module', method, imports);
        const { code, output } = await run(preload);
        expect(code).to.equal(2);
        expect(output).to.match(/^account-authz: a secret$/m);
      });
    }
  });

  it('exits 2 in another command, without output', async () => {
    const preload = throwingIn('schema', 'schema', 'JSON', 'stringify');
    const outcome = await runProduct(['schema'], preload);
    expect(outcome).to.include({ code: 2, stdout: '' });
  });

  for (const [output, args, exitCode] of [
    ['stdout', ['schema'], 0],
    ['stderr', ['serve', '--config', writeFixture('empty.json', {})], 1],
  ] as const) {
    it(`does not occur when \`head\` or another reader closes ${output} of ${args[0]} early`, async () => {
      const main = fileURLToPath(builtFile('main.js'));
      const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
      child[output].destroy();
      const other = output === 'stdout' ? child.stderr : child.stdout;
      const [printed, [code]] = await Promise.all([text(other), once(child, 'close')]);
      secrets.show('command', printed);
      expect({ code, printed }).to.deep.equal({ code: exitCode, printed: '' });
    });
  }

  it('does not occur when SIGTERM arrives with a closed log, which exits 0', async () => {
    service = await startServiceProcess(configuration(issuer.jwksUrl));
    service.leaveLog('closed');
    expect(await service.stop()).to.equal(0);
  });
});
