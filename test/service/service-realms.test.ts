// Issuers of one account each, in the built product: realms with keys of their own, and one key set for all.
import { createServer, type Server } from 'node:http';
import { expect } from 'chai';
import { checkRequest } from '../../lab/check-request.ts';
import { connect, type GrpcClient, reasonOf } from '../../lab/service.ts';
import { type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { signingKey } from '../../lab/signing-key.ts';
import { audience, token } from '../../lab/token.ts';
import { until } from '../../lab/until.ts';
import { listen } from '../support/listen.ts';

const realms = ['acme', 'globex', 'initech', 'shared'] as const;

describe('issuers of one account each', function () {
  this.timeout(60_000);
  let server: Server;
  let service: ServiceProcess;
  let client: GrpcClient;
  let base: string;
  const fetched: string[] = [];

  before(async () => {
    // Each realm publishes another key under the same kid.
    server = createServer((request, response) => {
      const path = request.url ?? '';
      fetched.push(path);
      const realm = realms.find(name => path === `/realms/${name}/certs`);
      void keyOf(realm ?? 'none').then(({ publicJwk }) =>
        response
          .writeHead(realm === undefined ? 404 : 200)
          .end(JSON.stringify({ keys: [{ ...publicJwk, kid: 'k1' }] })),
      );
    });
    base = `http://127.0.0.1:${await listen(server)}`;
    service = await startServiceProcess(configuration(['acme', 'globex']));
    client = connect(service.address);
  });
  after(async () => {
    client.close();
    await service.kill();
    server.close();
  });

  const keyOf = async (realm: string) => ({ ...(await signingKey(`realm-${realm}`)), kid: 'k1' }) as const;

  const configuration = (accounts: readonly string[]) => ({
    listen: '127.0.0.1:0',
    admin: '127.0.0.1:0',
    issuers: [
      { issuer: `${base}/realms/{acc}`, audiences: [audience], jwksUrl: `${base}/realms/{acc}/certs`, accounts },
      {
        issuer: 'https://{acc}.idp.test',
        audiences: [audience],
        jwksUrl: `${base}/realms/shared/certs`,
        accounts: ['*', '!acme'],
      },
    ],
    routes: [{ path: '/plans' }, { path: '/accounts/:account_id/*' }],
    account: { headers: ['x-account-id'], query: ['account_id'], hosts: [':account_id.api.test', 'api.test'] },
    roles: { owner: ['*'] },
    shutdown: { graceSeconds: 0 },
  });

  const signed = async (iss: string, realm: string, claims = {}): Promise<string> => {
    const now = Math.floor(Date.now() / 1000);
    const of = { iss, uid: 'u-1', app: 'web', acc: 'globex', role: 'owner', iat: now - 10, exp: now + 600, ...claims };
    return `Bearer ${await token({ key: await keyOf(realm), claims: of })}`;
  };
  const ofRealm = (realm: string) => signed(`${base}/realms/${realm}`, realm);
  const ask = async (authorization: string, parts: Parameters<typeof checkRequest>[0] = {}): Promise<string> => {
    const headers = { authorization: [authorization], ...parts.headers };
    const response = await client.check(
      checkRequest({ path: '/plans', http: { host: 'api.test' }, ...parts, headers }),
    );
    const acc = response.ok_response?.headers.find(({ header }) => header.key === 'x-auth-acc')?.header.value;
    return acc ?? reasonOf(response);
  };

  it('let each realm speak for its own account alone, in every place', async () => {
    const acme = await ofRealm('acme');
    const places = (acc: string): readonly Parameters<typeof checkRequest>[0][] => [
      { path: `/accounts/${acc}/orders` },
      { headers: { 'x-account-id': [acc] } },
      { path: `/plans?account_id=${acc}` },
      { http: { host: `${acc}.api.test` } },
    ];
    expect(await ask(acme)).to.equal('acme');
    for (const place of places('acme')) expect(await ask(acme, place)).to.equal('acme');
    for (const place of places('globex')) expect(await ask(acme, place)).to.equal('account_mismatch');
    expect(await ask(await ofRealm('globex'))).to.equal('globex');
  });

  it('never verify a token of one realm with a key of another', async () => {
    expect(await ask(await signed(`${base}/realms/acme`, 'globex'))).to.equal('token_invalid');
    expect(await ask(await signed(`${base}/realms/acme`, 'shared'))).to.equal('token_invalid');
    expect(await ask(await signed('https://initech.idp.test', 'globex'))).to.equal('token_invalid');
  });

  it('fetch nothing for a name that only a token brings', async () => {
    const before = new Set(fetched);
    for (const name of ['initech', '..', 'acme/../initech', 'acme%2e', 'a b', '', '{acc}', 'x'.repeat(129)])
      expect(await ask(await signed(`${base}/realms/${name}`, 'initech'))).to.equal('token_invalid');
    expect(new Set(fetched)).to.deep.equal(before);
    expect([...before].toSorted()).to.deep.equal(['acme', 'globex', 'shared'].map(name => `/realms/${name}/certs`));
  });

  it('share one key set where its URL names none, within the bounds of accounts', async () => {
    expect(await ask(await signed('https://initech.idp.test', 'shared'))).to.equal('initech');
    expect(await ask(await signed('https://acme.idp.test', 'shared'))).to.equal('account_mismatch');
    for (const label of ['Initech', 'a.b', '-a', ''])
      expect(await ask(await signed(`https://${label}.idp.test`, 'shared'))).to.equal('token_invalid');
  });

  it('are labels of the metrics: one for each key set', async () => {
    const page = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text();
    const labels = Array.from(page.matchAll(/^account_authz_key_set_keys\{issuer="([^"]+)"\}/gm), ([, label]) => label);
    expect(labels).to.have.members([`${base}/realms/acme`, `${base}/realms/globex`, 'https://{acc}.idp.test']);
  });

  it('are added while it runs, by their name', async () => {
    const initech = await ofRealm('initech');
    expect(await ask(initech)).to.equal('token_invalid');
    await service.configure(configuration(['acme', 'globex', 'initech']));
    await until(async () => (await ask(initech)) === 'initech');
    expect(await ask(await ofRealm('acme'))).to.equal('acme');
    expect(await ask(initech, { path: '/accounts/acme/x' })).to.equal('account_mismatch');
  });
});
