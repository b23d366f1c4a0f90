// A running service with a revocation list by URL: readiness, its answers, what it says of the list, and changes of the configuration.
import { expect } from 'chai';
import { reasonOf, serviceConfig, startServiceLab } from '../../lab/service.ts';
import { until } from '../../lab/until.ts';
import { type Publisher, startPublisher } from '../support/publisher.ts';

describe('service with a revocation list by URL', () => {
  let publisher: Publisher;
  let lab: Awaited<ReturnType<typeof startServiceLab>>;
  beforeEach(async () => {
    publisher = await startPublisher('{"uid":"nobody"}\n');
  });
  afterEach(async () => {
    await lab.stop();
    await publisher.stop();
  });

  const config = (revocation: Readonly<Record<string, unknown>> = {}) => ({
    shutdown: { graceSeconds: 0 },
    revocation: { url: `${publisher.url}?key=of-the-publisher`, refreshSeconds: 1, ...revocation },
  });
  const messages = (message: string) => lab.log.filter(({ msg }) => msg === message);
  const readiness = async () => {
    const answer = await lab.admin('/readyz');
    return { status: answer.status, ...((await answer.json()) as { revocation: Record<string, unknown> }) };
  };
  const metric = async (name: string): Promise<string | undefined> =>
    (await (await lab.admin('/metrics')).text()).split('\n').find(line => line.startsWith(`account_authz_${name} `));

  it('is not ready without the list, answers 503 to a good token alone, and recovers by itself', async () => {
    await publisher.stop();
    lab = await startServiceLab({ config: config(), changes: true, ready: false });
    const good = `Bearer ${await lab.token({})}`;
    expect(await readiness()).to.deep.include({ status: 503 });
    expect((await readiness()).revocation).to.include({
      url: publisher.url,
      state: 'loading',
      entries: 0,
      lastProblem: 'connection refused',
    });
    const { denied_response: denied, status } = await lab.check(good);
    expect({ http: denied?.status.code, rpc: status.code }).to.deep.equal({ http: 503, rpc: 14 });
    const headers = new Map(denied?.headers.map(({ header }) => [header.key, header.value]));
    expect(headers.has('retry-after')).to.equal(true);
    expect(headers.has('www-authenticate')).to.equal(false);
    expect(JSON.parse(denied?.body ?? '')).to.include({ status: 503, reason: 'revocation_unavailable' });
    expect(messages('check').at(-1)).to.include({
      decision: 'unavailable',
      reason: 'revocation_unavailable',
      detail: 'no revocation list yet, last fetch: connection refused',
    });
    const seconds = Math.floor(Date.now() / 1000);
    const expired = await lab.token({ claims: { iat: seconds - 900, exp: seconds - 600 } });
    expect(reasonOf(await lab.check(`Bearer ${expired}`))).to.equal('token_expired');
    expect(reasonOf(await lab.check(undefined))).to.equal('token_missing');
    // The list comes before the application, which nothing but a list could have revoked before.
    expect(reasonOf(await lab.check(`Bearer ${await lab.token({ claims: { app: 'none', role: 'none' } })}`))).to.equal(
      'revocation_unavailable',
    );
    expect(await metric('revocation_age_seconds')).to.equal(undefined);
    expect(await (await lab.admin('/')).text()).to.contain('There is no revocation list yet');
    await publisher.restart();
    await until(async () => (await readiness()).status === 200);
    expect(reasonOf(await lab.check(good))).to.equal('allowed');
    expect(messages('revocation list usable')).to.have.length(1);
    expect(messages('revocation list not fetched')).to.have.length(1);
    expect(await metric('revocation_age_seconds')).to.match(/ \d/);
    expect(JSON.stringify(lab.log)).to.not.contain('of-the-publisher');
  });

  it('revokes a cached token once the list has it, keeps it through bad lists that the log names once, and counts them', async () => {
    lab = await startServiceLab({ config: config(), changes: true });
    const authorization = `Bearer ${await lab.token({ claims: { sid: 'session-1' } })}`;
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    expect(messages('check').at(-1)).to.include({ sid: 'session-1' });
    publisher.publish('{"sid":"session-1"}\n');
    await until(async () => reasonOf(await lab.check(authorization)) === 'token_revoked');
    expect(messages('check').at(-1)).to.include({ detail: 'the revocation list has an entry for sid', cache: 'hit' });
    expect(messages('revocation list reloaded')).to.deep.include.members([
      { ...messages('revocation list reloaded')[0], url: publisher.url, entries: 1 },
    ]);
    publisher.publish('{"sid":""}\n');
    await until(async () => /[1-9]$/.test((await metric('revocation_reloads_total{result="failure"}')) ?? ''));
    lab.service.reloadRevocations();
    await until(async () => !/ [01]$/.test((await metric('revocation_reloads_total{result="failure"}')) ?? ' 0'));
    expect(messages('revocation list refused, the old one stays in force')).to.have.length(1);
    expect(messages('revocation list refused, the old one stays in force')[0]).to.deep.include({
      problems: [`${publisher.url}:1:1: sid: must not be empty`],
      count: 1,
    });
    expect(reasonOf(await lab.check(authorization))).to.equal('token_revoked');
    expect((await readiness()).status).to.equal(200);
    publisher.publish('# nobody\n');
    lab.service.reloadRevocations();
    await until(async () => reasonOf(await lab.check(authorization)) === 'allowed');
    expect(await metric('revocation_reloads_total{result="success"}')).to.match(/ 2$/);
  });

  it('stays ready with another list that cannot be fetched, answers 503 until it is there, and keeps a list of other times', async () => {
    lab = await startServiceLab({ config: config(), changes: true });
    const authorization = `Bearer ${await lab.token({})}`;
    const reload = (revocation: Readonly<Record<string, unknown>>) =>
      lab.service.reload({ kind: 'config', config: serviceConfig(lab.issuer, config(revocation)) });
    const requests = publisher.requests.length;
    await reload({ refreshSeconds: 3600 });
    expect(reasonOf(await lab.check(authorization))).to.equal('allowed');
    const other = await startPublisher('{"uid":"nobody"}\n');
    await other.stop();
    await reload({ url: other.url });
    expect(reasonOf(await lab.check(authorization))).to.equal('revocation_unavailable');
    expect((await readiness()).status).to.equal(200);
    await other.restart();
    lab.service.reloadRevocations();
    await until(async () => reasonOf(await lab.check(authorization)) === 'allowed');
    expect(publisher.requests.length).to.be.at.most(requests + 3);
    await other.stop();
  });
});
