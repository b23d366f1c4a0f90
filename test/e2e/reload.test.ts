// Configuration reload of the built product: by a file that Kubernetes swaps and by SIGHUP. Under load: test/service/service-reload-results.test.ts.
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'chai';
import { stringify } from 'yaml';
import { checkRequest } from '../../lab/check-request.ts';
import { connect, type GrpcClient } from '../../lab/service.ts';
import { type LogLine, type ServiceProcess, startServiceProcess } from '../../lab/service-process.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import type { TestIssuer } from '../../lab/test-issuer.ts';
import { until } from '../../lab/until.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { mountSecret } from '../support/secret-mount.ts';
import { bearer, configuration, startIssuer } from './lab.ts';

const path = '/api/subscriptions/accounts/acct1';
const reloaded = 'configuration reloaded';
const refused = 'configuration refused, the old one stays in effect';

function lines(service: ServiceProcess, ...messages: readonly string[]): readonly LogLine[] {
  return service.log().filter(({ msg }) => messages.includes(String(msg)));
}

describe('reload of the built product', () => {
  let issuer: TestIssuer;
  let service: ServiceProcess;
  let client: GrpcClient;
  let authorization: string;

  before(async () => {
    issuer = await startIssuer();
    authorization = await bearer();
  });
  after(() => issuer.stop());
  afterEach(async () => {
    client.close();
    await service.kill();
  });

  const config = (changes: Readonly<Record<string, unknown>> = {}) => ({
    ...configuration(issuer.jwksUrl),
    ...changes,
  });
  const start = async (...parameters: Parameters<typeof startServiceProcess>): Promise<void> => {
    service = await startServiceProcess(...parameters);
    client = connect(service.address);
  };
  const reason = async (): Promise<string | undefined> => {
    const response = await client.check(checkRequest({ path, raw: true, headers: { authorization } }));
    return response.dynamic_metadata?.fields.reason?.stringValue;
  };
  const reloads = (result: string) => async (): Promise<number> => {
    const text = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text();
    return Number(
      new RegExp(`^account_authz_config_reloads_total\\{result="${result}"\\} (\\d+)$`, 'm').exec(text)?.[1],
    );
  };

  it('says of a changed file whether it allows more', async () => {
    await start(config());
    // On a busy machine an answer may come too late, and is left out: the next changes may have one.
    await until(async () => {
      for (const each of [config({ roles: { owner: ['*'] } }), config()]) {
        const before = lines(service, reloaded).length;
        await service.configure(each);
        service.hangUp();
        await until(() => lines(service, reloaded).length > before);
      }
      const [less, more] = lines(service, reloaded).slice(-2);
      return less?.widens === false && less.rows === 0 && more?.widens === true && more.rows === 1;
    });
  });

  it('loads a file that Kubernetes swaps, and refuses a bad one with all its problems in one line', async () => {
    const mount = await mountSecret({ 'config.yaml': stringify(config()) });
    await start(config(), { file: mount.path('config.yaml') });
    expect(await reason()).to.equal('allowed');

    await mount.update({ 'config.yaml': stringify(config({ apps: ['other'] })) });
    await until(async () => (await reason()) === 'app_forbidden');

    await mount.update({ 'config.yaml': 'apps: []\ncolour: "s3cr3t"\n' });
    await until(() => lines(service, refused).length === 1);
    const file = mount.path('config.yaml');
    const [line] = lines(service, refused);
    expect(line?.problems).to.deep.equal([
      `${file}:1:1: issuers: is required`,
      `${file}:1:1: routes: is required`,
      `${file}:1:1: roles: is required`,
      `${file}:1:1: apps: must name at least one app`,
      `${file}:2:1: colour: is not a known key: the keys here are listen, listenInsecure, tls, admin, issuers, token, keys, routes, public, account, roles, scopes, apps, protectedResource, revocation, identityHeaders, forwardClaims, cache, log, shutdown`,
    ]);
    expect(line?.count).to.equal(5);
    expect(JSON.stringify(service.log())).to.not.contain('s3cr3t');
    expect(await reason()).to.equal('app_forbidden');
    expect([await reloads('success')(), await reloads('failure')()]).to.deep.equal([1, 1]);

    await mount.update({ 'config.yaml': stringify(config()) });
    await until(async () => (await reason()) === 'allowed');
  });

  it('reads the file again on SIGHUP, and does nothing where its bytes are the same', async () => {
    await start(config());
    await service.configure(config());
    service.hangUp();
    await service.configure(config({ apps: ['other'] }));
    service.hangUp();
    await until(() => lines(service, reloaded).length > 0);
    expect(await reason()).to.equal('app_forbidden');
    expect(await reloads('success')()).to.equal(1);
    expect(await service.stop()).to.equal(0);
  });

  it('survives a SIGHUP that comes during the start', async () => {
    // Sent as soon as the process has a handler of SIGTERM: before it reads the file.
    const hangUp =
      "process.on('newListener', name => name === 'SIGTERM' && setImmediate(() => process.kill(process.pid, 'SIGHUP')))";
    await start(config(), { nodeOptions: ['--import', `data:text/javascript,${encodeURIComponent(hangUp)}`] });
    expect(await reason()).to.equal('allowed');
  });

  it('tries a refused configuration again when a file that it names arrives', async () => {
    await start(config());
    const folder = freshFolder();
    const caFile = join(folder, 'ca.pem');
    const [own] = config().issuers as readonly Readonly<Record<string, unknown>>[];
    await service.configure(config({ issuers: [{ ...own, caFile }], apps: ['other'] }));
    await until(() => lines(service, refused).length === 1);
    expect(await reason()).to.equal('allowed');
    await writeFile(caFile, testCertificate({ isAuthority: true }).cert);
    await until(async () => (await reason()) === 'app_forbidden');
  });
});
