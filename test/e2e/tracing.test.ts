// Spans of the built product with a real SDK preloaded, and of a real Envoy in front of it, with the snippets of docs/tracing.md.
import { randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Document, parse } from 'yaml';
import { readSnippet } from '../../lab/document.ts';
import { envoyVersions, type RunningEnvoy, startEnvoy } from '../../lab/envoy.ts';
import { connectionManagerPath } from '../../lab/envoy-bootstrap.ts';
import { exchange, type HttpAnswer, headerValues, requestBytes } from '../../lab/raw-http.ts';
import { type RecordingUpstream, startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import { type CollectedSpan, startTraceCollector, type TraceCollector } from '../support/trace-collector.ts';
import { bearer, configuration, installEnvoys, startIssuer } from './lab.ts';

const page = 'docs/tracing.md';
const cache = fileURLToPath(new URL('../../.cache/', import.meta.url));
const path = '/api/subscriptions/accounts/acct1';
const serverKind = 2;
const errorStatus = 2;

// An SDK in which everything fails.
const brokenSdk = `
import { trace } from '@opentelemetry/api';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
const fail = () => { throw new Error('the processor is broken'); };
const processor = { onStart: fail, onEnd: fail, forceFlush: fail, shutdown: fail };
trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [processor] }));
`;

const hex = (bytes: number): string => randomBytes(bytes).toString('hex');
/** A client's trace and the id of its span. */
const newTrace = () => ({ traceId: hex(16), spanId: hex(8) });

describe('tracing', () => {
  let authentication: TestIssuer;
  let upstream: RecordingUpstream;
  let collector: TraceCollector;
  let authorization: string;
  /** Inside the project, so that its packages resolve. */
  let directory: string;

  before(async () => {
    await installEnvoys();
    await mkdir(cache, { recursive: true });
    directory = await mkdtemp(join(cache, 'otel-'));
    await writeFile(join(directory, 'otel.mjs'), readSnippet(page, 'js', 'setGlobalTracerProvider'));
    await writeFile(join(directory, 'broken.mjs'), brokenSdk);
    [authentication, upstream, collector] = await Promise.all([
      startIssuer(),
      startRecordingUpstream(),
      startTraceCollector(),
    ]);
    authorization = `Authorization: ${await bearer()}`;
  });
  after(() =>
    Promise.all([
      authentication.stop(),
      upstream.stop(),
      collector.stop(),
      rm(directory, { recursive: true, force: true }),
    ]),
  );

  const start = (
    sdk: string,
    config: Readonly<Record<string, unknown>> = {},
    collectorPort = collector.port,
  ): Promise<ServiceProcess> =>
    startServiceProcess(
      { ...configuration(authentication.jwksUrl), ...config },
      {
        nodeOptions: ['--import', join(directory, sdk)],
        env: {
          OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collectorPort}`,
          OTEL_BSP_SCHEDULE_DELAY: '20',
        },
      },
    );
  const ask = (envoy: RunningEnvoy, lines: readonly string[], target = path): Promise<HttpAnswer> =>
    exchange(envoy.port, requestBytes('GET', target, lines));
  const checkOf = (traceId: string) => (span: CollectedSpan) =>
    span.service === 'account-authz' && span.traceId === traceId;

  describe('with an SDK, behind an Envoy that does not trace', () => {
    let service: ServiceProcess;
    let envoy: RunningEnvoy;

    before(async () => {
      service = await start('otel.mjs');
      envoy = await startEnvoy({ upstream: upstream.port, authz: service.address });
    });
    after(() => Promise.all([envoy.stop(), service.kill()]));

    const askTraced = async (lines: readonly string[], target = path) => {
      const { traceId, spanId } = newTrace();
      const answer = await ask(envoy, [...lines, `traceparent: 00-${traceId}-${spanId}-01`], target);
      return { answer, traceId, spanId, span: await collector.span(checkOf(traceId)) };
    };

    it('logs the SDK at start', () => {
      expect(service.log().filter(({ msg }) => /^tracing enabled/.test(String(msg)))).to.have.lengthOf(1);
    });

    it('creates a span for each check, a child of the client’s span', async () => {
      const { answer, span, spanId } = await askTraced([authorization]);
      expect(answer.status).to.equal(200);
      expect(span).to.include({
        name: 'envoy.service.auth.v3.Authorization/Check',
        kind: serverKind,
        parentSpanId: spanId,
      });
      expect(span.attributes).to.include({
        'account_authz.decision': 'allow',
        'account_authz.reason': 'allowed',
        'rpc.system.name': 'grpc',
      });
    });

    it('records whether the token was cached', async () => {
      await askTraced([authorization]);
      const { span } = await askTraced([authorization]);
      expect(span.attributes['account_authz.token_cache']).to.equal('hit');
    });

    it('records the reason of a denial, which is not an error', async () => {
      const { answer, span } = await askTraced([authorization], '/api/subscriptions/accounts/acct2');
      expect(answer.status).to.equal(403);
      expect(span.attributes).to.include({
        'account_authz.decision': 'deny',
        'account_authz.reason': 'account_mismatch',
      });
      expect(span.statusCode).to.equal(0);
    });

    it('exports no span of a trace that is not sampled', async () => {
      const { traceId, spanId } = newTrace();
      await ask(envoy, [authorization, `traceparent: 00-${traceId}-${spanId}-00`]);
      await askTraced([authorization]);
      expect(collector.spans.filter(checkOf(traceId))).to.deep.equal([]);
    });

    it('exports no identity, no token and no path', async () => {
      const query = '?q=swordfish';
      await askTraced([authorization, 'cookie: swordfish'], path + query);
      const token = authorization.split(' ').at(-1) ?? '';
      for (const secret of ['swordfish', 'acct1', 'owner', '/api/', 'idp.test', ...token.split('.')]) {
        expect(collector.textOfSdks()).not.to.include(secret);
      }
    });

    it('flushes its spans on SIGTERM', async () => {
      const stopping = await start('otel.mjs', { shutdown: { graceSeconds: 0 } });
      const own = await startEnvoy({ upstream: upstream.port, authz: stopping.address });
      const { traceId, spanId } = newTrace();
      try {
        await ask(own, [authorization, `traceparent: 00-${traceId}-${spanId}-01`]);
        expect(await stopping.stop()).to.equal(0);
        expect(collector.spans.filter(checkOf(traceId))).to.have.lengthOf(1);
      } finally {
        await Promise.all([own.stop(), stopping.kill()]);
      }
    });

    it('ends with exit code 0 on SIGTERM while the collector is down', async () => {
      // The discard port, on which nothing listens.
      const stopping = await start('otel.mjs', { shutdown: { graceSeconds: 0 } }, 9);
      const own = await startEnvoy({ upstream: upstream.port, authz: stopping.address });
      try {
        await ask(own, [authorization, `traceparent: 00-${hex(16)}-${hex(8)}-01`]);
        expect(await stopping.stop()).to.equal(0);
      } finally {
        await Promise.all([own.stop(), stopping.kill()]);
      }
    });
  });

  it('records an error in the span if it cannot decide', async () => {
    const service = await startServiceProcess(
      { ...configuration('http://127.0.0.1:9/jwks.json') },
      {
        ready: false,
        nodeOptions: ['--import', join(directory, 'otel.mjs')],
        env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`, OTEL_BSP_SCHEDULE_DELAY: '20' },
      },
    );
    const envoy = await startEnvoy({ upstream: upstream.port, authz: service.address });
    const { traceId, spanId } = newTrace();
    try {
      await ask(envoy, [authorization, `traceparent: 00-${traceId}-${spanId}-01`]);
      const span = await collector.span(checkOf(traceId));
      expect(span.statusCode).to.equal(errorStatus);
      expect(span.attributes).to.include({ 'error.type': 'keys_unavailable' });
    } finally {
      await Promise.all([envoy.stop(), service.kill()]);
    }
  });

  it('answers the same with an SDK in which everything fails', async () => {
    const service = await start('broken.mjs');
    const envoy = await startEnvoy({ upstream: upstream.port, authz: service.address });
    try {
      const answers = [await ask(envoy, [authorization]), await ask(envoy, [])];
      expect(answers.map(({ status }) => status)).to.deep.equal([200, 401]);
      const lines = await Promise.all(
        answers.map(answer => service.logLine(headerValues(answer, 'x-request-id')[0] ?? '')),
      );
      expect(lines.map(({ reason }) => reason)).to.deep.equal(['allowed', 'token_missing']);
      await until(() => service.log().filter(({ msg }) => msg === 'fault').length === 2);
    } finally {
      await Promise.all([envoy.stop(), service.kill()]);
    }
  });

  describe('with the tracer of Envoy', () => {
    let withSdk: ServiceProcess;
    let without: ServiceProcess;

    before(async () => {
      [withSdk, without] = await Promise.all([
        start('otel.mjs'),
        startServiceProcess(configuration(authentication.jwksUrl)),
      ]);
    });
    after(() => Promise.all([withSdk.kill(), without.kill()]));

    const startTracingEnvoy = async (version: string, service: ServiceProcess): Promise<RunningEnvoy> => {
      const tracing = parse(readSnippet(page, 'yaml', 'OpenTelemetryConfig'));
      const cluster = readSnippet(page, 'yaml', 'load_assignment').replace('4318', String(collector.port));
      tracing.tracing.random_sampling.value = 100;
      return startEnvoy({
        version,
        upstream: upstream.port,
        authz: service.address,
        edit(bootstrap: Document) {
          bootstrap.setIn([...connectionManagerPath(bootstrap), 'tracing'], tracing.tracing);
          bootstrap.addIn(['static_resources', 'clusters'], parse(cluster));
          // Envoy buffers spans and, as shipped, sends them when there are five, or every five seconds.
          const layer = { name: 'test', static_layer: { 'tracing.opentelemetry.min_flush_spans': 1 } };
          bootstrap.addIn(['layered_runtime', 'layers'], layer);
        },
      });
    };

    for (const version of envoyVersions) {
      describe(`Envoy ${version}`, () => {
        let envoy: RunningEnvoy;
        before(async () => {
          envoy = await startTracingEnvoy(version, withSdk);
        });
        after(() => envoy.stop());

        it('has one trace of the client, the request, the ext_authz call and the check', async () => {
          const { traceId, spanId } = newTrace();
          const answer = await ask(envoy, [authorization, `traceparent: 00-${traceId}-${spanId}-01`]);
          const check = await collector.span(checkOf(traceId));
          const question = await collector.span(span => span.spanId === check.parentSpanId);
          const request = await collector.span(span => span.spanId === question.parentSpanId);
          expect([question.service, request.service]).to.deep.equal(['envoy', 'envoy']);
          expect(request).to.include({ traceId, parentSpanId: spanId, kind: serverKind });
          const line = await withSdk.logLine(headerValues(answer, 'x-request-id')[0] ?? '');
          expect(line.traceId).to.equal(traceId);
        });

        it('has a trace of Envoy if the client sends none, without the path and the query', async () => {
          const answer = await ask(envoy, [authorization], `${path}?q=swordfish`);
          const line = await withSdk.logLine(headerValues(answer, 'x-request-id')[0] ?? '');
          const check = await collector.span(checkOf(String(line.traceId)));
          const question = await collector.span(span => span.spanId === check.parentSpanId);
          expect(question).to.include({ service: 'envoy', traceId: line.traceId });
          const request = await collector.span(span => span.spanId === question.parentSpanId);
          expect(request.attributes['http.url']).to.equal('http://api.test/');
        });
      });
    }

    it('has the trace of Envoy in the log, also without an SDK', async () => {
      const envoy = await startTracingEnvoy('1.40.0', without);
      try {
        const answer = await ask(envoy, [authorization]);
        const { traceId } = await without.logLine(headerValues(answer, 'x-request-id')[0] ?? '');
        const request = await collector.span(span => span.traceId === traceId && span.kind === serverKind);
        expect(request.service).to.equal('envoy');
        expect(without.log().filter(({ msg }) => /^tracing enabled/.test(String(msg)))).to.deep.equal([]);
      } finally {
        await envoy.stop();
      }
    });
  });
});
