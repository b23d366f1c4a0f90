// The hosts of requests: entries, matching, the account in a host, and hosts that contradict.
import { expect } from 'chai';
import { admit, authorize } from '../../../src/authz/authorize.ts';
import { hostPlace, parseHostEntry } from '../../../src/authz/places/host-place.ts';
import type { RouteMatch } from '../../../src/authz/route-tree.ts';
import { facts, identity, policy, route } from '../../support/facts.ts';

const hosts = [':account_id.api.example.com', 'api.example.com', 'www.API.example.com'];
const match: RouteMatch = { kind: 'match', route: '/', routes: [], grants: [], segments: [] };

/** What the host names, with these entries; undefined: any host is good. */
function read(entries: readonly string[] | undefined, sent: Parameters<typeof facts>[0]) {
  const place = hostPlace(entries, 'account_id', { dots: false, lower: false });
  return place.read({ facts: facts(sent), query: '', match });
}

function matched(host: string, headers: Record<string, string | string[]> = {}, entries = hosts): unknown {
  const found = read(entries, { host, headers });
  return 'kind' in found ? found.reason : (found[0] ?? 'no account');
}

describe('host of a request', () => {
  const rows: readonly (readonly [host: string, found: string])[] = [
    ['acme.api.example.com', 'acme'],
    ['acme.api.example.com:8443', 'acme'],
    ['acme.API.Example.Com', 'acme'],
    ['a-1.api.example.com', 'a-1'],
    ['a.api.example.com', 'a'],
    ['acme:80.api.example.com', 'request_invalid'],
    ['acme.api.example.com:443:443', 'route_unknown'],
    ['api.example.com', 'no account'],
    ['API.example.com:443', 'no account'],
    ['www.api.example.com', 'no account'],
    ['WWW.api.example.com', 'no account'],
    ['Acme.api.example.com', 'request_invalid'],
    ['a_b.api.example.com', 'request_invalid'],
    ['-a.api.example.com', 'request_invalid'],
    ['a-.api.example.com', 'request_invalid'],
    ['.api.example.com', 'request_invalid'],
    [`${'a'.repeat(64)}.api.example.com`, 'request_invalid'],
    ['api.example.com.', 'request_invalid'],
    ['acme.api.example.com.:443', 'request_invalid'],
    ['', 'request_invalid'],
    [':443', 'request_invalid'],
    [':', 'request_invalid'],
    ['acme.api.example.com:', 'acme'],
    [`${'a.'.repeat(118)}api.example.com:65535`, 'route_unknown'],
    [`${'a.'.repeat(119)}api.example.com`, 'route_unknown'],
    [`a${'a.'.repeat(119)}api.example.com`, 'request_invalid'],
    ['\u0130.api.example.com', 'request_invalid'],
    ['a.b.api.example.com', 'route_unknown'],
    ['example.com', 'route_unknown'],
    ['localhost', 'route_unknown'],
    ['api.example.com:x', 'route_unknown'],
    ['api.example.com.evil.test', 'route_unknown'],
    ['u@acme.api.example.com', 'request_invalid'],
    ['[::1]', 'route_unknown'],
  ];
  for (const [host, found] of rows) {
    it(`${JSON.stringify(host.slice(0, 40))}: ${found}`, () => {
      expect(matched(host)).to.equal(found);
    });
  }

  it('is not empty and not longer than 253 characters, whatever is configured', () => {
    const found = (host: string, headers = {}) => {
      const accounts = read(undefined, { host, headers });
      return 'kind' in accounts ? accounts.reason : (accounts[0] ?? 'any');
    };
    expect(found(':')).to.equal('request_invalid');
    expect(found(':443')).to.equal('request_invalid');
    expect(found('', { ':authority': '' })).to.equal('request_invalid');
    expect(found('a'.repeat(254))).to.equal('request_invalid');
    expect(found(`${'a'.repeat(253)}:65535`)).to.equal('any');
    expect(found('A.b.', { host: 'c' })).to.equal('any');
    expect(found('')).to.equal('any');
  });

  it('matches an entry in ASCII letters alone', () => {
    const kept = ['kept.example.com', ':account_id.kept.example.com'];
    for (const host of ['\u212aept.example.com', 'acme.\u212aept.example.com'])
      expect(matched(host, {}, kept)).to.equal('route_unknown');
  });

  it('may not contradict :authority or a host header', () => {
    const host = 'acme.api.example.com';
    expect(matched(host, { ':authority': host, host })).to.equal('acme');
    expect(matched('', { ':authority': host })).to.equal('acme');
    for (const headers of [{ ':authority': 'b.api.example.com' }, { host: 'b.api.example.com' }, { host: [host, 'b'] }])
      expect(matched(host, headers)).to.equal('request_invalid');
    expect(matched('', { ':authority': host, host: 'b.api.example.com' })).to.equal('request_invalid');
  });

  it('names an account like every other place', () => {
    const under = policy({
      routes: [route('/a'), route('/a/:account_id')],
      headers: ['x-account-id'],
      hosts: [':account_id.example.com', 'example.com'],
    });
    const both = identity({ accounts: ['acme', 'globex'] });
    const of = (request: Parameters<typeof facts>[0]) => {
      const { outcome } = admit(under, facts(request));
      if (outcome.kind === 'refusal') return outcome.reason;
      const { decision, principal } = authorize(under, outcome, both, () => undefined);
      return decision.kind === 'allow' ? principal.acc : decision.reason;
    };
    expect(of({ target: '/a', host: 'globex.example.com' })).to.equal('globex');
    expect(of({ target: '/a', host: 'initech.example.com' })).to.equal('account_mismatch');
    expect(of({ target: '/a/acme', host: 'globex.example.com' })).to.equal('account_mismatch');
    expect(of({ target: '/a/acme', host: 'example.com' })).to.equal('acme');
    expect(of({ target: '/a', host: 'example.com' })).to.equal('account_required');
    expect(of({ target: '/a', host: 'other.test' })).to.equal('route_unknown');
    expect(of({ target: '/A', host: 'other.test' })).to.equal('request_invalid');
    expect(of({ target: '/a', host: 'example.com.', headers: { authorization: [] } })).to.equal('request_invalid');
  });
});

describe('entry of account.hosts', () => {
  it('is in lower case, with the parameter that the configuration names', () => {
    expect(parseHostEntry(':tenant.Example.com', 'tenant')).to.deep.equal({ kind: 'account', parent: '.example.com' });
    expect(parseHostEntry('Example.com', 'tenant')).to.deep.equal({ kind: 'literal', host: 'example.com' });
    expect(parseHostEntry(':account_id.example.com', 'tenant').kind).to.equal('problem');
  });

  const label = 'a'.repeat(63);
  const longest = `${label}.${label}.${label}.${'a'.repeat(61)}`;
  for (const host of ['a', 'a.b', 'a1.b-2.c', `${label}.test`, longest]) {
    it(`may be ${host.slice(0, 40)}`, () => {
      expect(parseHostEntry(host, 'account_id')).to.deep.equal({ kind: 'literal', host });
    });
  }
  const wrong = ['', 'a.test!', '!a.test', '-a.test', 'a-.test', 'a.-b', 'a.b-', 'a..b', 'a.test.', 'a.test:80', 'a b'];
  for (const host of [...wrong, `${label}a.test`, `${longest}a`, ':account_id', ':account_id.', 'a.:account_id.b']) {
    it(`may not be ${JSON.stringify(host.slice(0, 70))}`, () => {
      const rule =
        'must be a host name without port and without a dot at the end, whose first label may be :account_id';
      expect(parseHostEntry(host, 'account_id')).to.deep.equal({ kind: 'problem', problem: rule });
      expect(() => read(['a.test', host], {})).to.throw(rule);
    });
  }
});

describe('detail of a refused host', () => {
  const rows: readonly (readonly [host: string, headers: Record<string, string>, detail: string])[] = [
    ['', {}, 'an empty host'],
    ['a'.repeat(254), {}, 'a host longer than 253 characters'],
    ['api.example.com.', {}, 'a host with a dot at its end'],
    ['A.api.example.com', {}, 'an account label outside the grammar'],
    ['other.test', {}, 'no host matches'],
    ['api.example.com', { host: 'other.test' }, 'the host contradicts :authority'],
  ];
  for (const [host, headers, detail] of rows) {
    it(`is "${detail}" for ${JSON.stringify(host.slice(0, 40))}`, () => {
      expect(read(hosts, { host, headers })).to.have.property('detail', detail);
    });
  }
});
