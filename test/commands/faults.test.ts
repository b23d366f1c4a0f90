// The built product with a fault that nobody caught: it ends with 2 at once and says so, whatever is open.
import { expect } from 'chai';
import { writeFixture } from '../config/config-file.ts';
import { configuration, startIssuer } from '../e2e/lab.ts';
import { runProduct } from '../support/command.ts';
import { connect, type GrpcClient, until } from '../support/service.ts';
import { type ServiceProcess, startServiceProcess } from '../support/service-process.ts';
import type { TestIssuer } from '../support/test-issuer.ts';

/** Node's options for this module before the product, beside something that keeps any process alive. */
function preloaded(name: string, text: string): { readonly nodeOptions: readonly string[] } {
  const open = "import { createServer } from 'node:net'; createServer().listen(0, '127.0.0.1');";
  return { nodeOptions: ['--import', writeFixture(`${name}.mjs`, `${open}\n${text}`)] };
}

/** At SIGUSR2, from the event loop. */
function onSignal(name: string, does: string): { readonly nodeOptions: readonly string[] } {
  const imports = "import { EventEmitter } from 'node:events'; import { writeSync } from 'node:fs';";
  return preloaded(name, `${imports} process.on('SIGUSR2', () => setImmediate(() => { ${does} }));`);
}

/** A method of Node that throws in a call from this function, whose name the built product keeps. */
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

describe('a fault that nobody caught', function () {
  this.timeout(30_000);
  let issuer: TestIssuer;
  let service: ServiceProcess;
  let client: GrpcClient;

  before(async () => {
    issuer = await startIssuer();
  });
  after(() => issuer.stop());

  describe('while it serves', () => {
    const start = async (options: Parameters<typeof startServiceProcess>[1], changes = {}): Promise<void> => {
      service = await startServiceProcess({ ...configuration(issuer.jwksUrl), ...changes }, options);
      client = connect(service.address);
      await client.health('');
    };
    const lastWords = (): unknown => {
      expect(JSON.stringify(service.log()) + service.errorLog()).to.not.contain('a secret');
      return service.log().filter(({ msg }) => msg === 'fault');
    };
    afterEach(async () => {
      client.close();
      await service.kill();
    });

    for (const [kind, does, fault] of [
      ['an exception', "throw new TypeError('a secret')", { name: 'TypeError' }],
      ['a rejection', "Promise.reject(Object.assign(new Error('a secret'), { code: 'E_X' }))", { code: 'E_X' }],
      ['a rejection without a reason', 'Promise.reject()', { name: 'undefined' }],
      [
        'an event `error` without a listener',
        "new EventEmitter().emit('error', new RangeError())",
        { name: 'RangeError' },
      ],
      ['two at once', "Promise.reject(new SyntaxError()); throw new TypeError('a secret')", { name: 'TypeError' }],
    ] as const) {
      it(`ends it with 2 and its last line, whatever is open: ${kind}`, async () => {
        await start(onSignal('signal', does));
        process.kill(service.pid, 'SIGUSR2');
        expect(await service.exitCode()).to.equal(2);
        expect(lastWords()).to.have.lengthOf(1).and.have.nested.property('[0].level', 'fatal');
        expect(service.log().at(-1)?.fault).to.include(fault);
      });
    }

    it('ends it with 2 where it comes while it drains', async () => {
      await start(onSignal('signal', 'throw new Error()'), { shutdown: { graceSeconds: 60 } });
      process.kill(service.pid, 'SIGTERM');
      await until(() => service.log().some(({ msg }) => msg === 'stopping'));
      process.kill(service.pid, 'SIGUSR2');
      expect(await service.exitCode()).to.equal(2);
    });

    it('ends it with 2 where it comes in a reload, outside of what is caught there', async () => {
      await start(throwingIn('reload', 'forgetIssuers', 'Array.prototype', 'flatMap'));
      service.hangUp();
      expect(await service.exitCode()).to.equal(2);
      expect(lastWords()).to.have.nested.property('[0].fault.name', 'TypeError');
    });

    it('ends it with 2 where nobody reads its log', async () => {
      const fill = "try { for (;;) writeSync(1, ' '.repeat(4096)); } catch {} throw new Error();";
      await start(onSignal('full', fill));
      service.leaveLog('open');
      process.kill(service.pid, 'SIGUSR2');
      expect(await service.exited()).to.equal(2);
    });

    it('ends it with 2 where its log is closed', async () => {
      await start(onSignal('signal', 'throw new Error()'));
      service.leaveLog('closed');
      process.kill(service.pid, 'SIGUSR2');
      expect(await service.exited()).to.equal(2);
    });
  });

  describe('at its start', () => {
    const run = async (preload: { readonly nodeOptions: readonly string[] }) => {
      const file = writeFixture('start.json', configuration(issuer.jwksUrl));
      const { code, stdout, stderr } = await runProduct(['serve', '--config', file], preload);
      return { code, output: stdout + stderr };
    };

    it('ends it with 2: an exception', async () => {
      const throwOnce = `const asked = setInterval(() => {
        if (process.listenerCount('uncaughtException') > 0) { clearInterval(asked); throw new TypeError('a secret'); }
      }, 1);`;
      const { code, output } = await run(preloaded('early', throwOnce));
      expect(code).to.equal(2);
      expect(output).to.contain('"msg":"fault"').and.contain('TypeError').and.not.contain('a secret');
    });

    for (const [where, caller, imports, method] of [
      ['the reading of the file', 'loadBoundedFile', "import module from 'node:fs/promises';", 'open'],
      [
        'the watch of the file, when all else is open',
        'startFileWatch',
        "import { webcrypto } from 'node:crypto'; const module = Object.getPrototypeOf(webcrypto.subtle);",
        'digest',
      ],
    ] as const) {
      it(`ends it with 2: ${where}`, async () => {
        const preload = throwingIn('start', caller, 'module', method, imports);
        const { code, output } = await run(preload);
        expect(code).to.equal(2);
        expect(output).to.match(/^account-authz: a secret$/m);
      });
    }
  });

  it('ends any other command with 2, and leaves its result alone', async () => {
    const preload = throwingIn('schema', 'schema', 'JSON', 'stringify');
    const outcome = await runProduct(['schema'], preload);
    expect(outcome).to.include({ code: 2, stdout: '' });
  });

  it('a configuration that cannot be taken ends it with 1, whatever is open', async () => {
    const file = writeFixture('refused.json', {});
    expect(await runProduct(['serve', '--config', file], preloaded('open', ''))).to.include({ code: 1 });
  });

  it('SIGTERM ends it with 0 where its log is closed', async () => {
    service = await startServiceProcess(configuration(issuer.jwksUrl));
    service.leaveLog('closed');
    expect(await service.stop()).to.equal(0);
  });
});
