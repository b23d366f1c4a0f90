// Which listen addresses the configuration accepts, and the problem reported for each other one.
import { expect } from 'chai';
import {
  hostAndPort,
  isUnspecified,
  type ListenAddress,
  parseListenAddress,
  toListenAddress,
  toTcpAddress,
} from '../../src/text/listen-address.ts';

describe('parseListenAddress', () => {
  const good: readonly (readonly [text: string, address: ListenAddress])[] = [
    ['127.0.0.1:9191', { kind: 'tcp', host: '127.0.0.1', port: 9191 }],
    ['[::1]:0', { kind: 'tcp', host: '::1', port: 0 }],
    ['[FD00::A]:65535', { kind: 'tcp', host: 'fd00::a', port: 65_535 }],
    ['Authz.Internal:80', { kind: 'tcp', host: 'authz.internal', port: 80 }],
    ['3com.example:80', { kind: 'tcp', host: '3com.example', port: 80 }],
    ['unix:/run/authz.sock', { kind: 'unix', path: '/run/authz.sock' }],
    ['unix:///run/authz.sock', { kind: 'unix', path: '/run/authz.sock' }],
  ];
  for (const [text, address] of good) {
    it(`parses ${text}`, () => {
      expect(parseListenAddress(text)).to.deep.equal(address);
    });
  }

  const bad: readonly (readonly [text: string, problem: string])[] = [
    ['9191', 'must be host:port, [v6]:port or unix:/absolute/path'],
    [':9191', 'must be host:port, [v6]:port or unix:/absolute/path'],
    ['localhost', 'must be host:port, [v6]:port or unix:/absolute/path'],
    ['localhost:65536', 'must end in a port from 0 to 65535'],
    ['localhost:+1', 'must end in a port from 0 to 65535'],
    ['::1:80', 'must have an IPv4 address, an IPv6 address in brackets or a host name before the port'],
    ['256.0.0.1:80', 'must have an IPv4 address, an IPv6 address in brackets or a host name before the port'],
    ['unix:relative', 'must have an absolute path after unix:, such as unix:/run/account-authz/authz.sock'],
    ['unix:/run/', 'must name a socket after unix:, not a folder: remove the "/" at the end'],
    [`unix:/${'ä'.repeat(54)}`, 'must have a socket path of at most 107 bytes (this one has 109)'],
  ];
  for (const [text, problem] of bad) {
    it(`reports that ${JSON.stringify(text.slice(0, 20))} ${problem}`, () => {
      expect(parseListenAddress(text)).to.deep.equal({ kind: 'problem', problem });
    });
  }
});

describe('an address of a validated configuration', () => {
  it('is the parsed one', () => {
    expect(toListenAddress('unix:/run/authz.sock')).to.deep.equal({ kind: 'unix', path: '/run/authz.sock' });
    expect(toTcpAddress('[::1]:80')).to.deep.equal({ kind: 'tcp', host: '::1', port: 80 });
  });

  it('throws if it is invalid, or a socket where a port must be', () => {
    expect(() => toListenAddress('localhost')).to.throw('the configuration has an invalid address: it must be');
    expect(() => toTcpAddress('unix:/run/authz.sock')).to.throw('a Unix socket where a port must be');
  });
});

describe('isUnspecified', () => {
  for (const [host, expected] of [
    ['0.0.0.0', true],
    ['::', true],
    ['127.0.0.1', false],
    ['::1', false],
    ['localhost', false],
  ] as const) {
    it(`is ${expected} for ${host}`, () => expect(isUnspecified(host)).to.equal(expected));
  }
});

describe('hostAndPort', () => {
  for (const [host, text] of [
    ['localhost', 'localhost:1'],
    ['127.0.0.1', '127.0.0.1:1'],
    ['::1', '[::1]:1'],
  ] as const) {
    it(`writes ${text}, which parseListenAddress parses back`, () => {
      expect(hostAndPort(host, 1)).to.equal(text);
      expect(parseListenAddress(text)).to.deep.equal({ kind: 'tcp', host, port: 1 });
    });
  }
});
