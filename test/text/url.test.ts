// The machine that a URL names.
import { expect } from 'chai';
import { hostOf, isLoopbackUrl, portOf } from '../../src/text/url.ts';

const cases: readonly (readonly [url: string, host: string, port: number, isLoopback: boolean])[] = [
  ['https://auth.example.com/keys', 'auth.example.com', 443, false],
  ['https://auth.example.com:8443', 'auth.example.com', 8443, false],
  ['http://localhost', 'localhost', 80, true],
  ['http://127.1.2.3:9901/', '127.1.2.3', 9901, true],
  ['https://[::1]:8443/', '::1', 8443, true],
  ['https://[2001:db8::1]', '2001:db8::1', 443, false],
];

describe('the machine of a URL', () => {
  for (const [url, host, port, isLoopback] of cases) {
    it(`is ${host}, port ${port}, for ${url}`, () => {
      expect(hostOf(new URL(url))).to.equal(host);
      expect(portOf(new URL(url))).to.equal(port);
      expect(isLoopbackUrl(url)).to.equal(isLoopback);
    });
  }
});
