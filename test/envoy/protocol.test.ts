// The loaded services with captured and golden bytes.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { authorizationService, healthService } from '../../src/envoy/proto-files.ts';
import {
  type CheckRequestMessage,
  type CheckResponseMessage,
  headerAppendAction,
  servingStatus,
} from '../../src/envoy/protocol.ts';
import { ours, valuesOf } from './proto-facts.ts';

interface Capture {
  readonly name: string;
  readonly bytes: Buffer;
  readonly content: CaptureContent;
}

interface CaptureContent {
  readonly attributes: {
    readonly context_extensions?: Readonly<Record<string, string>>;
    readonly request: {
      readonly http: Readonly<Record<string, unknown>> & {
        readonly header_map?: { readonly headers: readonly { readonly key: string; readonly raw_value?: string }[] };
        readonly raw_body?: string;
      };
    };
  };
}

describe('authorizationService', () => {
  it('has the unary path that Envoy calls', () => {
    expect(authorizationService.Check.path).to.equal('/envoy.service.auth.v3.Authorization/Check');
    expect(authorizationService.Check.requestStream).to.equal(false);
    expect(authorizationService.Check.responseStream).to.equal(false);
  });

  describe('requestDeserialize of captured requests', () => {
    for (const { name, bytes, content } of captures()) {
      it(`finds only known fields in ${name}`, () => {
        const type = ours.lookupType('envoy.service.auth.v3.CheckRequest');
        const message = type.toObject(type.decode(bytes), { longs: String, enums: String, bytes: String });
        expect(message).to.deep.equal(content);
      });

      it(`reads ${name} with the loader settings of the service`, () => {
        const { attributes } = content;
        const message = authorizationService.Check.requestDeserialize(bytes);
        expect(message.attributes?.context_extensions).to.deep.equal(attributes.context_extensions ?? {});
        const http = message.attributes?.request?.http;
        expect(http).to.deep.include({ path: '', ...asRead(attributes.request.http) });
      });
    }
  });

  it('reads an empty message as a message without attributes', () => {
    expect(authorizationService.Check.requestDeserialize(Buffer.alloc(0))).to.deep.equal({ attributes: null });
  });

  it('reads a header named __proto__ as a header', () => {
    const request = requestWithHeaders(Object.fromEntries([['__proto__', 'x']]));
    const headers = authorizationService.Check.requestDeserialize(request).attributes?.request?.http?.headers ?? {};
    expect(Object.entries(headers)).to.deep.equal([['__proto__', 'x']]);
  });

  describe('F-015 golden bytes', () => {
    const set = {
      header: { key: 'x-auth-acc', value: 'acct1' },
      append: { value: false },
      append_action: headerAppendAction.overwriteIfExistsOrAdd,
    };
    const responses: readonly { name: string; hex: string; message: object; read?: object }[] = [
      {
        name: 'R1 deny 401',
        hex: '0a02081012050a03089103',
        message: { status: { code: 16 }, denied_response: { status: { code: 401 } } },
      },
      {
        name: 'R2 deny 403',
        hex: '0a02080712050a03089303',
        message: { status: { code: 7 }, denied_response: { status: { code: 403 } } },
      },
      {
        name: 'R3 allow and set a header',
        hex: '0a0208001a1d121b0a130a0a782d617574682d61636312056163637431120208001802',
        message: { status: { code: 0 }, ok_response: { headers: [set] } },
      },
      {
        name: 'R4 allow, set a header and remove another',
        hex: '0a0208001a2c121b0a130a0a782d617574682d616363120561636374311202080018022a0d617574686f72697a6174696f6e',
        message: { status: { code: 0 }, ok_response: { headers: [set], headers_to_remove: ['authorization'] } },
      },
      { name: 'R5 F-001 the empty message, which allows', hex: '', message: {}, read: { status: null } },
      {
        name: 'R6 error 503, which failure_mode_allow turns into an allow',
        hex: '0a02080e2a050a0308f703',
        message: { status: { code: 14 }, error_response: { status: { code: 503 } } },
      },
      {
        name: 'R7 deny 503',
        hex: '0a02080e12050a0308f703',
        message: { status: { code: 14 }, denied_response: { status: { code: 503 } } },
      },
    ];
    // The types of protocol.ts exclude some of these messages.
    for (const { name, hex, message, read = message } of responses) {
      it(`are written for and read as ${name}`, () => {
        expect(authorizationService.Check.responseSerialize(message as CheckResponseMessage).toString('hex')).to.equal(
          hex,
        );
        expect(authorizationService.Check.responseDeserialize(Buffer.from(hex, 'hex'))).to.containSubset(read);
      });
    }
  });

  it('names the header actions as in proto/', () => {
    const values = valuesOf(ours.lookupEnum('envoy.config.core.v3.HeaderValueOption.HeaderAppendAction'));
    expect(inCamelCase(values)).to.deep.equal(headerAppendAction);
  });
});

describe('healthService', () => {
  it('has the paths that probes call', () => {
    expect(healthService.Check.path).to.equal('/grpc.health.v1.Health/Check');
    expect(healthService.Watch.path).to.equal('/grpc.health.v1.Health/Watch');
    expect(healthService.Watch.responseStream).to.equal(true);
  });

  it('writes and reads a status as a number', () => {
    const bytes = healthService.Check.responseSerialize({ status: servingStatus.notServing });
    expect(bytes.toString('hex')).to.equal('0802');
    expect(healthService.Check.responseDeserialize(bytes)).to.deep.equal({ status: servingStatus.notServing });
  });

  it('reads an empty message as the empty service name, which means the whole server', () => {
    expect(healthService.Check.requestDeserialize(Buffer.alloc(0))).to.deep.equal({ service: '' });
  });

  it('names the serving states as in proto/', () => {
    const values = valuesOf(ours.lookupEnum('grpc.health.v1.HealthCheckResponse.ServingStatus'));
    expect(inCamelCase(values)).to.deep.equal(servingStatus);
  });
});

function inCamelCase(values: Readonly<Record<string, number>>): Record<string, number> {
  const camelCase = (name: string) =>
    name.toLowerCase().replaceAll(/_([a-z])/g, (_match, letter: string) => letter.toUpperCase());
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [camelCase(name), value]));
}

function captures(): Capture[] {
  const directory = new URL('../fixtures/captures/', import.meta.url);
  return readdirSync(directory, { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.bin'))
    .sort()
    .map(name => capture(name.slice(0, -'.bin'.length)));
}

function capture(name: string): Capture {
  const file = (extension: string) => new URL(`../fixtures/captures/${name}.${extension}`, import.meta.url);
  return { name, bytes: readFileSync(file('bin')), content: JSON.parse(readFileSync(file('json'), 'utf8')) };
}

/** The JSON of a capture as the loader reads it: bytes as a Buffer, and the texts that are absent as empty. */
function asRead(http: CaptureContent['attributes']['request']['http']): Record<string, unknown> {
  const { header_map, raw_body, ...rest } = http;
  const lines = header_map?.headers.map(({ key, raw_value = '' }) => ({
    key,
    value: '',
    raw_value: Buffer.from(raw_value, 'base64'),
  }));
  return {
    ...rest,
    header_map: lines === undefined ? null : { headers: lines },
    raw_body: Buffer.from(raw_body ?? '', 'base64'),
  };
}

function requestWithHeaders(headers: Readonly<Record<string, string>>): Buffer {
  const http = { method: 'GET', headers };
  const message = { attributes: { request: { http } } } as unknown as CheckRequestMessage;
  return authorizationService.Check.requestSerialize(message);
}
