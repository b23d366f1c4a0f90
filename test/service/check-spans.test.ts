// The span of each check, as a real OpenTelemetry SDK receives it.
import { SpanKind, SpanStatusCode, TraceFlags, trace } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  SimpleSpanProcessor,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { expect } from 'chai';
import { secrets } from '../../lab/secrets.ts';
import type { CheckRecord } from '../../src/check/check.ts';
import { createCheckSpans, registeredTracer } from '../../src/service/check-spans.ts';
import { principal } from '../support/facts.ts';

const traceId = '0af7651916cd43dd8448eb211c80319c';
const parentId = 'b7ad6b7169203331';

/** A check with a secret in every member that can hold one. */
function record(changes: Partial<CheckRecord> = {}): CheckRecord {
  return {
    requestId: 'secret-request',
    decision: 'allow',
    reason: 'allowed',
    detail: 'secret detail',
    found: 'secret claim',
    method: 'SECRET',
    route: '/api/secret/*',
    principal: principal({ uid: 'secret-uid', app: 'secret-app', role: 'secret-role' }),
    kid: 'secret-kid',
    cache: 'hit',
    durationMs: 1.25,
    traceparent: undefined,
    tracestate: undefined,
    ...changes,
  };
}

function spanOf(changes: Partial<CheckRecord> = {}): ReadableSpan {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  createCheckSpans(provider.getTracer('test')).record(record(changes));
  const [span, ...more] = exporter.getFinishedSpans();
  if (span === undefined || more.length > 0) throw new Error('not one span');
  const { name, attributes, events, links, status, resource } = span;
  secrets.show('trace', JSON.stringify([name, attributes, events, links, status, resource.attributes]));
  return span;
}

const milliseconds = ([seconds, nanoseconds]: readonly [number, number]): number => seconds * 1e3 + nanoseconds / 1e6;

describe('createCheckSpans', () => {
  it('records a server span with only decision, reason and cache result', () => {
    const { name, kind, attributes, status, events, links } = spanOf();
    expect({ name, kind, attributes, status, events, links }).to.deep.equal({
      name: 'envoy.service.auth.v3.Authorization/Check',
      kind: SpanKind.SERVER,
      attributes: {
        'rpc.system.name': 'grpc',
        'rpc.method': 'envoy.service.auth.v3.Authorization/Check',
        'rpc.response.status_code': 'OK',
        'account_authz.decision': 'allow',
        'account_authz.reason': 'allowed',
        'account_authz.token_cache': 'hit',
      },
      status: { code: SpanStatusCode.UNSET },
      events: [],
      links: [],
    });
  });

  it('omits the cache result when no token was looked up', () => {
    expect(spanOf({ cache: undefined }).attributes).not.to.have.property('account_authz.token_cache');
  });

  it('records no error for a denial', () => {
    const { attributes, status } = spanOf({ decision: 'deny', reason: 'account_mismatch' });
    expect(attributes).to.include({ 'account_authz.decision': 'deny', 'account_authz.reason': 'account_mismatch' });
    expect(attributes).not.to.have.property('error.type');
    expect(status.code).to.equal(SpanStatusCode.UNSET);
  });

  it('records an error for an unavailable decision', () => {
    const { attributes, status } = spanOf({ decision: 'unavailable', reason: 'keys_unavailable' });
    expect(attributes).to.include({ 'error.type': 'keys_unavailable' });
    expect(status.code).to.equal(SpanStatusCode.ERROR);
  });

  it('records a span with the duration of the check that ends now', () => {
    const before = Date.now();
    const { startTime, endTime } = spanOf({ durationMs: 12.5 });
    expect(milliseconds(endTime) - milliseconds(startTime)).to.be.closeTo(12.5, 0.01);
    expect(milliseconds(endTime)).to.be.within(before, Date.now() + 1);
  });

  it("records a child of the caller's span, with its tracestate", () => {
    const span = spanOf({ traceparent: `00-${traceId}-${parentId}-01`, tracestate: 'vendor=1,other=2' });
    expect(span.spanContext().traceId).to.equal(traceId);
    expect(span.parentSpanContext).to.deep.include({ traceId, spanId: parentId, isRemote: true });
    expect(span.spanContext().traceState?.serialize()).to.equal('vendor=1,other=2');
  });

  for (const traceparent of [undefined, 'evil', `00-${traceId}-${'0'.repeat(16)}-01`]) {
    it(`starts a new trace for the traceparent ${String(traceparent)}`, () => {
      const span = spanOf({ traceparent, tracestate: 'vendor=1' });
      expect(span.parentSpanContext).to.equal(undefined);
      expect(span.spanContext().traceState).to.equal(undefined);
    });
  }

  const flags: readonly (readonly [flags: string, exported: number])[] = [
    ['01', 1],
    ['00', 0],
  ];
  for (const [flag, exported] of flags) {
    it(`${exported === 1 ? 'exports' : 'does not export'} a span with a parent-based sampler and trace flags ${flag}`, () => {
      const exporter = new InMemorySpanExporter();
      const provider = new BasicTracerProvider({
        sampler: new ParentBasedSampler({ root: new AlwaysOffSampler() }),
        spanProcessors: [new SimpleSpanProcessor(exporter)],
      });
      createCheckSpans(provider.getTracer('test')).record(record({ traceparent: `00-${traceId}-${parentId}-${flag}` }));
      expect(exporter.getFinishedSpans()).to.have.lengthOf(exported);
    });
  }

  it('passes the reason to the sampler before the span starts', () => {
    const sampled: unknown[] = [];
    const sampler: Sampler = {
      shouldSample(_context, _traceId, _name, _kind, attributes) {
        sampled.push(attributes['account_authz.reason']);
        return { decision: SamplingDecision.NOT_RECORD };
      },
      toString: () => 'test',
    };
    createCheckSpans(new BasicTracerProvider({ sampler }).getTracer('test')).record(
      record({ reason: 'app_forbidden' }),
    );
    expect(sampled).to.deep.equal(['app_forbidden']);
  });

  it('propagates an exception of the SDK', () => {
    const broken: SpanProcessor = {
      onStart: () => undefined,
      onEnd() {
        throw new Error('the processor is broken');
      },
      forceFlush: () => Promise.resolve(),
      shutdown: () => Promise.resolve(),
    };
    const provider = new BasicTracerProvider({ spanProcessors: [broken] });
    expect(() => createCheckSpans(provider.getTracer('test')).record(record())).to.throw('the processor is broken');
  });
});

describe('registeredTracer', () => {
  afterEach(() => trace.disable());

  it('returns undefined without an SDK', () => {
    expect(registeredTracer('1.2.3')).to.equal(undefined);
  });

  it('returns the tracer of the SDK', () => {
    const exporter = new InMemorySpanExporter();
    trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
    registeredTracer('1.2.3')?.startSpan('a span').end();
    const [span] = exporter.getFinishedSpans();
    expect(span?.instrumentationScope).to.include({ name: 'account-authz', version: '1.2.3' });
    expect(span?.spanContext().traceFlags).to.equal(TraceFlags.SAMPLED);
  });
});
