// The key thread: no issuer blocks the event loop of the service, and a thread that fails is replaced.
import { execFile, spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as tls from 'node:tls';
import { promisify } from 'node:util';
import type { Worker } from 'node:worker_threads';
import { expect } from 'chai';
import { builtFile } from '../../lab/built.ts';
import { programArguments } from '../../lab/compiled.ts';
import { secrets } from '../../lab/secrets.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { startTestIssuer, type TestIssuer } from '../../lab/test-issuer.ts';
import { createKeyThread, type KeyThread } from '../../src/keys/key-thread.ts';
import type { KeyDocument } from '../../src/keys/key-transport.ts';

const failingEntry = new URL('failing-key-thread.mjs', import.meta.url);

describe('key thread', () => {
  const ends: (() => unknown)[] = [];

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  function startThread(entry?: URL): KeyThread {
    const thread = createKeyThread(entry);
    ends.push(() => thread.stop());
    return thread;
  }

  async function startIssuer(): Promise<TestIssuer> {
    const issuer = await startTestIssuer();
    ends.push(() => issuer.stop());
    return issuer;
  }

  function get(thread: KeyThread, url: string, signal = new AbortController().signal): Promise<KeyDocument> {
    return thread.getDocument({ url, proxy: {} }, signal);
  }

  describe('event loop of the service', () => {
    const connections = 3;
    // Where the service reads the answers itself, its event loop has no time for checks. Of what another thread reads it gets one message.
    const maxUtilization = 0.5;
    let port: number;

    before(async () => {
      const program = programArguments('test/support/flooding-issuer.ts');
      const issuer = spawn(process.execPath, program, { stdio: ['ignore', 'pipe', 'inherit'] });
      after(() => issuer.kill());
      const [line] = await once(issuer.stdout, 'data');
      port = Number(line);
    });

    for (const [name, path, problem] of [
      ['header lines', 'headers', 'headers too large'],
      ['trailer lines', 'trailers', 'connection closed'],
      ['informational responses', 'informational', 'connection closed'],
      ['chunks of one byte', 'chunks', 'connection closed'],
    ] as const) {
      it(`is not blocked by an issuer that floods it with ${name}: ${problem}`, async () => {
        const thread = startThread();
        // Starts the thread, which is not part of the measurement.
        expect(await get(thread, `http://127.0.0.1:${port}/good`)).to.have.property('kind', 'body');
        const urls = Array.from({ length: connections }, () => `http://127.0.0.1:${port}/${path}`);
        const before = performance.eventLoopUtilization();
        const documents = await Promise.all(urls.map(url => get(thread, url)));
        expect(performance.eventLoopUtilization(before).utilization).to.be.below(maxUtilization);
        for (const document of documents) expect(document).to.deep.equal({ kind: 'problem', problem });
        expect(await get(thread, `http://127.0.0.1:${port}/good`)).to.have.property('kind', 'body');
      });
    }
  });

  it('ends when it is idle, and the next fetch starts another', async () => {
    const workers: Worker[] = [];
    const onWorker = (message: unknown): void => {
      workers.push((message as { readonly worker: Worker }).worker);
    };
    subscribe('worker_threads', onWorker);
    ends.push(() => unsubscribe('worker_threads', onWorker));
    const thread = createKeyThread(builtFile('key-thread-entry.js'), 500);
    ends.push(() => thread.stop());
    const { jwksUrl } = await startIssuer();
    for (let fetches = 0; fetches < 2; fetches += 1) {
      expect(await get(thread, jwksUrl)).to.have.property('kind', 'body');
      expect(workers).to.have.length(1);
    }
    for (const worker of workers) await once(worker, 'exit');
    expect(await get(thread, jwksUrl)).to.have.property('kind', 'body');
    expect(workers).to.have.length(2);
  });

  describe('failure of the thread', () => {
    for (const [name, path] of [
      ['exits', 'exits'],
      ['throws', 'throws'],
      ['exceeds its memory limit', 'grows'],
    ] as const) {
      it(`fails the fetches in flight and is replaced at the next fetch if it ${name}`, async () => {
        const [issuer, slow] = [await startIssuer(), await startIssuer()];
        const thread = startThread(failingEntry);
        slow.fault({ kind: 'hang' });
        const inFlight = get(thread, slow.jwksUrl);
        const failed = { kind: 'problem', problem: 'fetch thread ended' };
        expect(await get(thread, `http://127.0.0.1:1/${path}`)).to.deep.equal(failed);
        expect(await inFlight).to.deep.equal(failed);
        expect(await get(thread, issuer.jwksUrl)).to.have.property('kind', 'body');
      });
    }

    it('is detected when an aborted fetch does not end, and the thread is replaced', async () => {
      const issuer = await startIssuer();
      const thread = startThread(failingEntry);
      const hanging = get(thread, 'http://127.0.0.1:1/hangs', AbortSignal.timeout(100));
      expect(await hanging).to.deep.equal({ kind: 'problem', problem: 'fetch thread ended' });
      expect(await get(thread, issuer.jwksUrl)).to.have.property('kind', 'body');
    });
  });

  it('continues other fetches when one is aborted, and fails them on stop', async () => {
    const issuer = await startIssuer();
    const thread = startThread();
    issuer.fault({ kind: 'hang' });
    const aborting = new AbortController();
    const [aborted, other] = [get(thread, issuer.jwksUrl, aborting.signal), get(thread, `${issuer.jwksUrl}?other`)];
    aborting.abort();
    expect(await aborted).to.deep.equal({ kind: 'problem', problem: 'stopped' });
    thread.stop();
    expect(await other).to.deep.equal({ kind: 'problem', problem: 'stopped' });
  });

  it('is not started again once it is stopped', async () => {
    const issuer = await startIssuer();
    const thread = startThread();
    thread.stop();
    expect(await get(thread, issuer.jwksUrl)).to.deep.equal({ kind: 'problem', problem: 'stopped' });
    expect(issuer.requests()).to.deep.equal([]);
  });

  it('fails the fetch if it cannot be started', async () => {
    const thread = startThread(new URL('absent.js', import.meta.url));
    const failed = { kind: 'problem', problem: 'fetch thread ended' };
    expect(await get(thread, 'http://127.0.0.1:1/')).to.deep.equal(failed);
  });

  describe('trust in NODE_EXTRA_CA_CERTS', () => {
    for (const withCaFile of [false, true]) {
      // Older versions of Node cannot add it to the roots that are trusted besides a caFile: docs/keys.md.
      if (withCaFile && !('setDefaultCACertificates' in tls)) continue;
      it(withCaFile ? 'holds in addition to a caFile' : 'holds without a caFile', async () => {
        const folder = await mkdtemp(join(tmpdir(), 'account-authz-key-thread-'));
        ends.push(() => rm(folder, { recursive: true }));
        const certificate = testCertificate();
        const [extra, other] = [join(folder, 'extra.pem'), join(folder, 'other.pem')];
        await writeFile(extra, certificate.cert);
        await writeFile(other, testCertificate({ name: 'other', isAuthority: true }).cert);
        const issuer = await startTestIssuer({ tls: certificate });
        ends.push(() => issuer.stop());
        const program = programArguments('test/keys/key-thread-get.ts');
        const { stdout } = await promisify(execFile)(
          process.execPath,
          [...program, issuer.jwksUrl, ...(withCaFile ? [other] : [])],
          { env: { ...process.env, NODE_EXTRA_CA_CERTS: extra } },
        );
        secrets.show('command', stdout);
        expect(stdout).to.equal('body\n');
      });
    }
  });
});
