// A fake OpenTelemetry collector: accepts spans over HTTP, as JSON from an SDK and as protobuf from Envoy.
import { createServer, type IncomingMessage } from 'node:http';
import { gunzipSync } from 'node:zlib';
import protobuf from 'protobufjs';
import { secrets } from '../../lab/secrets.ts';
import { listen } from './listen.ts';

export interface CollectedSpan {
  readonly service: string;
  readonly name: string;
  /** The numbers of opentelemetry-proto. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for a root span. */
  readonly parentSpanId: string;
  readonly statusCode: number;
  readonly attributes: Readonly<Record<string, string>>;
}

// The part of opentelemetry/proto/trace/v1/trace.proto that tests read.
const { root } = protobuf.parse(`syntax = "proto3";
  message Request { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5; int32 kind = 6;
    repeated KeyValue attributes = 9; Status status = 15;
  }
  message Status { int32 code = 3; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue { string string_value = 1; }`);
const requestType = root.lookupType('Request');

interface KeyValue {
  readonly key: string;
  readonly value?: { readonly stringValue?: string };
}
interface Request {
  readonly resourceSpans?: readonly {
    readonly resource?: { readonly attributes?: readonly KeyValue[] };
    readonly scopeSpans?: readonly {
      readonly spans?: readonly {
        readonly traceId: string | Uint8Array;
        readonly spanId: string | Uint8Array;
        readonly parentSpanId?: string | Uint8Array;
        readonly name: string;
        readonly kind?: number;
        readonly attributes?: readonly KeyValue[];
        readonly status?: { readonly code?: number };
      }[];
    }[];
  }[];
}

export async function startTraceCollector() {
  const spans: CollectedSpan[] = [];
  const texts: string[] = [];
  const waiting = new Map<(span: CollectedSpan) => boolean, (span: CollectedSpan) => void>();
  const server = createServer(async (request, response) => {
    const body = await bodyOf(request);
    const isJson = request.headers['content-type'] === 'application/json';
    // Protobuf encodes strings as plain UTF-8.
    secrets.show('trace', body.toString('latin1'));
    const message = (isJson ? JSON.parse(body.toString()) : requestType.decode(body)) as Request;
    if (isJson) texts.push(body.toString());
    for (const span of spansOf(message)) {
      spans.push(span);
      for (const [isWanted, resolve] of waiting) if (isWanted(span)) resolve(span);
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end('{}');
  });
  const port = await listen(server);
  server.unref();
  return {
    port,
    spans,
    /** Everything that SDKs sent, as text, to search for secrets. */
    textOfSdks: () => texts.join('\n'),
    /** Waits for the first matching span. */
    span(isWanted: (span: CollectedSpan) => boolean): Promise<CollectedSpan> {
      const found = spans.find(isWanted);
      return found === undefined ? new Promise(resolve => waiting.set(isWanted, resolve)) : Promise.resolve(found);
    },
    stop: () =>
      new Promise<void>(resolve => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  return request.headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body;
}

function spansOf({ resourceSpans = [] }: Request): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans = [] }) =>
    scopeSpans
      .flatMap(each => each.spans ?? [])
      .map(span => ({
        service: toRecord(resource?.attributes)['service.name'] ?? '',
        name: span.name,
        kind: span.kind ?? 0,
        traceId: hex(span.traceId),
        spanId: hex(span.spanId),
        parentSpanId: hex(span.parentSpanId ?? ''),
        statusCode: span.status?.code ?? 0,
        attributes: toRecord(span.attributes),
      })),
  );
}

function toRecord(attributes: readonly KeyValue[] = []): Record<string, string> {
  return Object.fromEntries(attributes.map(({ key, value }) => [key, value?.stringValue ?? '']));
}

function hex(id: string | Uint8Array): string {
  return typeof id === 'string' ? id : Buffer.from(id).toString('hex');
}
