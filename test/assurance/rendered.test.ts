// Generated configurations: a real Envoy accepts the rendered bootstrap of each, the lint has no finding, and Envoy with the service
// answers generated requests as the oracle. Envoy itself answers 404 without a route.
import { expect } from 'chai';
import fc from 'fast-check';
import { runCommand } from '../../lab/command.ts';
import { writeFixture } from '../../lab/config-file.ts';
import { envoyVersions } from '../../lab/envoy.ts';
import { renderedEnvoyOf } from '../../lab/envoy-bootstrap.ts';
import { exchange, type HttpAnswer, requestBytes } from '../../lab/raw-http.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { issuer } from '../../lab/token.ts';
import { bearer, reasonOf, useLab } from '../e2e/lab.ts';
import { useRunning } from '../support/use-running.ts';
import { type Decision, decide } from './oracle/decision.ts';
import type { PublishedKey } from './oracle/issuer-keys.ts';
import { settingsOf, type WrittenConfiguration } from './oracle/settings.ts';

// A fixed seed, so that failures are reproducible.
const seed = Number(process.env.RENDER_SEED ?? 1);
const configurations = Number(process.env.RENDER_CONFIGURATIONS ?? 6);
const requestsOfEach = 60;

const literals = fc.constantFrom('api', 'v1', 'v2', 'orders', 'Orders', 'billing', 'a~b', '@me', 'x.y', 'on');
const parameters = fc.constantFrom(':account_id', ':other', ':any');
const template = fc
  .tuple(
    fc.array(fc.oneof({ weight: 3, arbitrary: literals }, { weight: 1, arbitrary: parameters }), {
      minLength: 1,
      maxLength: 4,
    }),
    fc.boolean(),
  )
  .map(([segments, subtree]) => `/${segments.join('/')}${subtree ? '/*' : ''}`);

function toRoute(path: string): { readonly path: string; readonly accountInPath?: false } {
  return path.includes(':') && !path.includes(':account_id') ? { path, accountInPath: false } : { path };
}

const shapeOf = (path: string): string => path.replaceAll(/:(?!account_id)\w+/g, ':any');

interface Generated {
  readonly routes: readonly { readonly path: string; readonly accountInPath?: false }[];
  readonly public?: readonly { readonly path: string }[];
  readonly account: Readonly<Partial<Record<'headers' | 'query' | 'hosts', readonly string[]>>>;
  readonly identityHeaders: string;
  readonly token: { readonly forward: boolean };
}

const written: fc.Arbitrary<Generated> = fc
  .record({
    routes: fc.uniqueArray(template.map(toRoute), { minLength: 1, maxLength: 4, selector: each => shapeOf(each.path) }),
    public: fc.option(
      fc.uniqueArray(
        fc.constantFrom('/open', '/open/all/*', '/@open/x.y').map(path => ({ path })),
        { minLength: 1, selector: ({ path }) => path },
      ),
      { nil: undefined },
    ),
    account: fc.constantFrom(
      { headers: ['x-account-id'], query: ['account_id'] },
      { headers: ['X-Org-Id', 'tenant'] },
      { query: ['account'] },
      { headers: ['on'] },
      { headers: ['x-account-id'], hosts: ['api.test'] },
    ),
    identityHeaders: fc.constantFrom('x-auth-', 'idp-', 'x-our-own-'),
    token: fc.record({ forward: fc.boolean() }),
  })
  // A route of a parameter would match the public paths too.
  .map(({ public: open, ...rest }) =>
    open === undefined || rest.routes.some(({ path }) => path.startsWith('/:')) ? rest : { ...rest, public: open },
  );

interface Asked {
  readonly method: string;
  readonly target: string;
  readonly token: 'none' | 'owner' | 'member' | 'other account';
  readonly account: string | undefined;
  readonly forged: boolean;
  readonly host: string;
}

const segment = fc.oneof(literals, fc.constantFrom('acct1', 'acct2', 'x'));

/** Paths of the templates and next to them. */
function requestsFor({ routes }: Pick<Generated, 'routes'>): fc.Arbitrary<Asked> {
  const own = fc
    .tuple(
      fc.constantFrom(...routes),
      fc.array(fc.constantFrom('acct1', 'acct1', 'acct1', 'acct2'), { minLength: 4, maxLength: 4 }),
    )
    .map(([{ path }, values]) => {
      let next = 0;
      return path.replace(/\/\*$/, '').replaceAll(/:\w+/g, () => values[next++ % values.length] ?? 'acct1');
    });
  const changes = fc.constantFrom(
    (path: string) => path,
    (path: string) => path,
    (path: string) => `${path}/`,
    (path: string) => `${path}X`,
    (path: string) => `${path}/more`,
    (path: string) => path.slice(0, path.lastIndexOf('/')) || '/',
    (path: string) => path.toUpperCase(),
  );
  const near = fc.tuple(own, changes).map(([path, change]) => change(path));
  const any = fc.array(segment, { minLength: 1, maxLength: 5 }).map(segments => `/${segments.join('/')}`);
  const open = fc.constantFrom(
    ...'/open /open/ /open/all /open/all/a.b/c /@open/x.y /open/all/a/ /open/x /Open /open/allx /open/all/a%20b'.split(
      ' ',
    ),
    '/@open/xxy',
  );
  return fc.record({
    method: fc.constantFrom('GET', 'GET', 'POST', 'DELETE'),
    target: fc
      .tuple(
        fc.oneof({ weight: 5, arbitrary: near }, { weight: 1, arbitrary: any }, { weight: 1, arbitrary: open }),
        fc.constantFrom('', '', '?account=acct1', '?account_id=acct2'),
      )
      .map(parts => parts.join('')),
    token: fc.constantFrom('owner', 'owner', 'owner', 'member', 'other account', 'none'),
    account: fc.constantFrom(undefined, undefined, 'acct1', 'acct2'),
    forged: fc.boolean(),
    host: fc.constantFrom('api.test', 'api.test', 'api.test', 'other.test'),
  });
}

/** What Envoy serves without a check: the methods and the strict grammar of a public route. */
function isOpen({ method, target }: Asked, { public: open = [] }: Generated): boolean {
  const segments = (target.split('?', 1)[0] ?? '').replace(/\/$/, '').split('/').slice(1);
  return (
    method === 'GET' &&
    segments.every(each => /^[\w.~:@-]+$/.test(each)) &&
    open.some(({ path }) => {
      const own = path.replace(/\/\*$/, '').split('/').slice(1);
      const isLong = path.endsWith('/*') ? segments.length >= own.length : segments.length === own.length;
      return isLong && own.every((each, i) => each === segments[i]);
    })
  );
}

function isServedHost({ host }: Asked, { account }: Generated): boolean {
  return account.hosts === undefined || account.hosts.includes(host);
}

/** Envoy routes the literal part of a template up to its first parameter, and everything under it, to the service. */
function isLed(target: string, routes: readonly { readonly path: string }[]): boolean {
  const [path = ''] = target.split('?', 1);
  return routes.some(({ path: text }) => {
    const segments = text.replace(/\/\*$/, '').split('/');
    const end = segments.findIndex(each => each.startsWith(':'));
    const literal = segments.slice(0, end === -1 ? undefined : end).join('/');
    return path === literal || path.startsWith(`${literal}/`);
  });
}

describe(`rendered bootstraps of ${configurations} configurations, seed ${seed}`, () => {
  let published: PublishedKey;
  const seen = new Map<string, number>();

  before(async () => {
    published = (await signingKey('k1')).publicJwk as PublishedKey;
  });

  for (const [i, settings] of fc.sample(written, { numRuns: configurations, seed }).entries()) {
    const version = envoyVersions[i % envoyVersions.length] ?? envoyVersions[0];
    const paths = settings.routes.map(({ path }) => path).join(' ');

    describe(`${paths} (${settings.identityHeaders}, Envoy ${version})`, () => {
      let headers: Readonly<Record<Exclude<Asked['token'], 'none'>, string>>;
      const suite = useLab({ ...settings });
      const { lab } = suite;
      const envoy = useRunning(async () => {
        headers = {
          owner: suite.owner,
          member: await bearer({ role: 'member' }),
          'other account': await bearer({ acc: 'acct2' }),
        };
        const bootstrap = await renderedEnvoyOf(suite.file, []);
        const lint = ['--config', suite.file, '--envoy', writeFixture(`generated-${i}-envoy.yaml`, bootstrap)];
        expect(await runCommand('check-config', lint)).to.include({ code: 0, stderr: '' });
        return suite.start({ version, bootstrap });
      });

      it('answers as the oracle', async () => {
        for (const asked of fc.sample(requestsFor(settings), { numRuns: requestsOfEach, seed: seed + i })) {
          lab.upstream.clear();
          const lines = linesOf(asked);
          const bytes = requestBytes(asked.method, asked.target, lines);
          const answer = await exchange(envoy.port, bytes.replace('Host: api.test', `Host: ${asked.host}`));
          const about = `${asked.method} ${asked.target} ${JSON.stringify(asked)}`;
          if (isServedHost(asked, settings) && isOpen(asked, settings)) {
            expectServedOpenly(answer, about);
            continue;
          }
          const isAsked = isServedHost(asked, settings) && isLed(asked.target, settings.routes);
          const decision = isAsked ? decisionOf(asked) : undefined;
          const reason = decision?.reason ?? 'no route';
          seen.set(reason, (seen.get(reason) ?? 0) + 1);
          expectAsDecided(answer, decision, about);
        }
      });

      function linesOf({ token, account, forged }: Asked): string[] {
        const names = settings.account.headers ?? ['x-unrelated'];
        return [
          ...(token === 'none' ? [] : [`Authorization: ${headers[token]}`]),
          ...(account === undefined ? [] : [`${names[0]}: ${account}`]),
          ...(forged
            ? [`${settings.identityHeaders}acc: evil`, `${settings.identityHeaders.replaceAll('-', '.')}uid: evil`]
            : []),
        ];
      }

      function decisionOf(asked: Asked): Decision {
        const shown = linesOf(asked).map(line => line.split(/: (.*)/, 2) as [string, string]);
        const http = {
          method: asked.method,
          path: asked.target,
          host: asked.host,
          scheme: 'http',
          protocol: 'HTTP/1.1',
          query: '',
          fragment: '',
          header_map: null,
          headers: Object.fromEntries(
            shown.filter(([, value]) => value !== 'evil').map(([name, value]) => [name.toLowerCase(), value]),
          ),
        };
        const message = { attributes: { request: { http }, context_extensions: {} } };
        const keys = new Map([[issuer, { state: 'usable', published: [published] } as const]]);
        return decide(
          message,
          settingsOf(suite.config as unknown as WrittenConfiguration),
          keys,
          Math.floor(Date.now() / 1000),
        );
      }

      function expectServedOpenly(answer: HttpAnswer, about: string): void {
        seen.set('open', (seen.get('open') ?? 0) + 1);
        expect(answer.status, about).to.equal(200);
        const [request, ...more] = lab.upstream.requests;
        expect(more, about).to.deep.equal([]);
        const names = (request?.headers ?? []).map(([name]) => name.toLowerCase());
        const accounts = (settings.account.headers ?? []).map(name => name.toLowerCase());
        const kept = names.filter(
          name => accounts.includes(name) || name.replaceAll(/[^a-z0-9]/g, '-').startsWith(settings.identityHeaders),
        );
        expect(kept, about).to.deep.equal([]);
        if (!settings.token.forward) expect(names, about).not.to.include('authorization');
      }

      function expectAsDecided(answer: HttpAnswer, decision: Decision | undefined, about: string): void {
        if (decision?.reason !== 'allowed') {
          expect(lab.upstream.requests, about).to.deep.equal([]);
          const reasons = decision === undefined ? [undefined] : [decision.reason, ...decision.alsoPermitted];
          expect(reasonOf(answer), about).to.be.oneOf(reasons);
          if (decision === undefined) expect(answer.status, about).to.equal(404);
          return;
        }
        expect(answer.status, about).to.equal(200);
        const [request, ...more] = lab.upstream.requests;
        expect(more, about).to.deep.equal([]);
        const { identity } = decision;
        const prefix = settings.identityHeaders;
        const owned = (request?.headers ?? []).filter(([name]) =>
          name
            .toLowerCase()
            .replaceAll(/[^a-z0-9]/g, '-')
            .startsWith(prefix),
        );
        const wanted = Object.entries(identity ?? {}).map(([field, value]) => [`${prefix}${field}`, value]);
        expect(owned, about).to.have.deep.members(wanted);
        const hasToken = (request?.headers ?? []).some(([name]) => name.toLowerCase() === 'authorization');
        expect(hasToken, about).to.equal(settings.token.forward);
      }
    });
  }

  // A suite of its own, because mocha runs direct tests before suites.
  describe('all together', () => {
    it('get every kind of answer', () => {
      const kinds = 'allowed,open,no route,route_unknown,request_invalid,token_missing,role_forbidden,account_mismatch';
      expect([...seen.keys()]).to.include.members(kinds.split(','));
    });
  });
});
