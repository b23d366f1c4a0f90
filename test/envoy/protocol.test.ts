// The loaded services with captured and golden bytes.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import {
  appendAction,
  authorizationService,
  type CheckResponseMessage,
  healthService,
  servingStatus,
} from '../../src/envoy/protocol.ts';
import { ours, valuesOf } from './proto-facts.ts';

interface Capture {
  readonly name: string;
  readonly bytes: Buffer;
  readonly content: unknown;
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
    }
  });

  describe('F-015 golden bytes', () => {
    const set = {
      header: { key: 'x-auth-acc', value: 'acct1' },
      append: { value: false },
      append_action: appendAction.overwriteIfExistsOrAdd,
    };
    const deny = (code: number, http: number) => ({ status: { code }, denied_response: { status: { code: http } } });
    const allow = (more: object) => ({ status: { code: 0 }, ok_response: { headers: [set], ...more } });
    const twice =
      '0a0208001a2c121b0a130a0a782d617574682d616363120561636374311202080018022a0d617574686f72697a6174696f6e';
    const responses: readonly (readonly [name: string, hex: string, message: object, read?: object])[] = [
      ['R1 deny 401', '0a02081012050a03089103', deny(16, 401)],
      ['R2 deny 403', '0a02080712050a03089303', deny(7, 403)],
      [
        'R3 allow and set a header',
        '0a0208001a1d121b0a130a0a782d617574682d61636312056163637431120208001802',
        allow({}),
      ],
      ['R4 allow, set a header and remove another', twice, allow({ headers_to_remove: ['authorization'] })],
      ['R5 F-001 the empty message, which allows', '', {}, { status: null }],
      ['R7 deny 503', '0a02080e12050a0308f703', deny(14, 503)],
    ];
    for (const [name, hex, message, read = message] of responses) {
      it(`are written for and read as ${name}`, () => {
        expect(authorizationService.Check.responseSerialize(message as CheckResponseMessage).toString('hex')).to.equal(
          hex,
        );
        expect(authorizationService.Check.responseDeserialize(Buffer.from(hex, 'hex'))).to.containSubset(read);
      });
    }
  });

  it('writes no error_response, which failure_mode_allow turns into an allow', () => {
    const message = { status: { code: 14 }, error_response: { status: { code: 503 } } };
    expect(authorizationService.Check.responseSerialize(message).toString('hex')).to.equal('0a02080e');
  });

  it('names the header actions as in proto/', () => {
    const values = valuesOf(ours.lookupEnum('envoy.config.core.v3.HeaderValueOption.HeaderAppendAction'));
    expect(inCamelCase(values)).to.deep.equal(appendAction);
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
