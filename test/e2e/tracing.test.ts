// Spans of the built product with a real SDK preloaded, and of a real Envoy in front of it, with the snippets of docs/tracing.md. What a span
// holds is tested in test/service/check-spans.test.ts.
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
import { startRecordingUpstream } from '../../lab/recording-upstream.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { type CollectedSpan, startTraceCollector } from '../support/trace-collector.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, configuration, installEnvoys, startIssuer } from './lab.ts';

const page = 'docs/tracing.md';
const cache = fileURLToPath(new URL('../../.cache/', import.meta.url));
const path = '/api/subscriptions/accounts/acct1';
const serverKind = 2;

const hex = (bytes: number): string => randomBytes(bytes).toString('hex');
const isEnabled = ({ log }: ServiceProcess): boolean => log().some(({ msg }) => /^tracing enabled/.test(String(msg)));

describe('tracing', () => {
  const authentication = useRunning(startIssuer);
  const upstream = useRunning(startRecordingUpstream);
  const collector = useRunning(startTraceCollector);
  let authorization: string;
  /** Inside the project, so that its packages resolve. */
  let directory: string;

  before(async () => {
    await installEnvoys();
    await mkdir(cache, { recursive: true });
    directory = await mkdtemp(join(cache, 'otel-'));
    await writeFile(join(directory, 'otel.mjs'), readSnippet(page, 'js', 'setGlobalTracerProvider'));
    authorization = `Authorization: ${await bearer()}`;
  });
  after(() => rm(directory, { recursive: true, force: true }));

  const start = (sdk: string, collectorPort = collector.port): Promise<ServiceProcess> =>
    startServiceProcess(configuration(authentication.jwksUrl), {
      nodeOptions: ['--import', join(directory, sdk)],
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collectorPort}`, OTEL_BSP_SCHEDULE_DELAY: '20' },
    });
  const ask = (envoy: RunningEnvoy, lines: readonly string[], target = path): Promise<HttpAnswer> =>
    exchange(envoy.port, requestBytes('GET', target, lines));
  const checkOf = (traceId: string) => (span: CollectedSpan) =>
    span.service === 'account-authz' && span.traceId === traceId;

  describe('with an SDK, behind an Envoy that does not trace', () => {
    const service = useRunning(() => start('otel.mjs'));
    const envoy = useRunning(() => startEnvoy({ upstream: upstream.port, authz: service.address }));

    it('creates a span for each sampled check, a child of the client’s span, without identity, token and path', async () => {
      expect(isEnabled(service)).to.equal(true);
      const [traceId, ignored, parentSpanId] = [hex(16), hex(16), hex(8)];
      await ask(envoy, [authorization, `traceparent: 00-${ignored}-${parentSpanId}-00`]);
      const lines = [authorization, 'cookie: swordfish', `traceparent: 00-${traceId}-${parentSpanId}-01`];
      await ask(envoy, lines, `${path}?q=swordfish`);
      const span = await collector.span(checkOf(traceId));
      const name = 'envoy.service.auth.v3.Authorization/Check';
      expect(span).to.include({ name, kind: serverKind, parentSpanId, statusCode: 0 });
      expect(span.attributes).to.include({ 'account_authz.reason': 'allowed', 'account_authz.token_cache': 'hit' });
      expect(collector.spans.filter(checkOf(ignored))).to.deep.equal([]);
      const token = authorization.split(' ').at(-1) ?? '';
      for (const secret of ['swordfish', 'acct1', 'owner', '/api/', 'idp.test', ...token.split('.')])
        expect(collector.textOfSdks()).not.to.include(secret);
    });

    it('flushes its spans on SIGTERM, and exits 0 while the collector is down', async () => {
      // 9 is the discard port, on which nothing listens.
      for (const port of [collector.port, 9]) {
        const stopping = await start('otel.mjs', port);
        const own = await startEnvoy({ upstream: upstream.port, authz: stopping.address });
        const traceId = hex(16);
        try {
          await ask(own, [authorization, `traceparent: 00-${traceId}-${hex(8)}-01`]);
          expect(await stopping.stop()).to.equal(0);
          expect(collector.spans.filter(checkOf(traceId))).to.have.lengthOf(port === 9 ? 0 : 1);
        } finally {
          await Promise.all([own.stop(), stopping.kill()]);
        }
      }
    });
  });

  describe('with the tracer of Envoy', () => {
    const withSdk = useRunning(() => start('otel.mjs'));

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
      it(`has one trace of client, request, ext_authz call and check, without path and query, Envoy ${version}`, async () => {
        const envoy = await startTracingEnvoy(version, withSdk);
        const [sent, spanId] = [hex(16), hex(8)];
        try {
          for (const lines of [[authorization, `traceparent: 00-${sent}-${spanId}-01`], [authorization]]) {
            const answer = await ask(envoy, lines, `${path}?q=swordfish`);
            const { traceId } = await withSdk.logLine(headerValues(answer, 'x-request-id')[0] ?? '');
            const check = await collector.span(checkOf(String(traceId)));
            const question = await collector.span(span => span.spanId === check.parentSpanId);
            const request = await collector.span(span => span.spanId === question.parentSpanId);
            expect([question.service, request.service]).to.deep.equal(['envoy', 'envoy']);
            expect(request).to.include({ traceId, kind: serverKind });
            expect(request.attributes['http.url']).to.equal('http://api.test/');
            if (lines.length > 1) expect(request).to.include({ traceId: sent, parentSpanId: spanId });
          }
        } finally {
          await envoy.stop();
        }
      });
    }
  });
});
