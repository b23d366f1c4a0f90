// The overlays of k8s/ with their own Envoy: bootstrap, configuration and trial certificates as they are mounted, in a real Envoy and the
// built product. Only addresses and the issuer differ.
import { readFile } from 'node:fs/promises';
import { expect } from 'chai';
import { parse } from 'yaml';
import { startEnvoy } from '../../lab/envoy.ts';
import { render } from '../../lab/kustomize.ts';
import { exchange, requestBytes } from '../../lab/raw-http.ts';
import { layOutFiles } from '../deploy/k8s/mounted-files.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, identity, onlyRequestOf, ownedFields, reasonOf, startLab } from './lab.ts';

const own = '/api/subscriptions/accounts/acct1/items';

for (const overlay of ['envoy-sidecar', 'service', 'demo'] as const) {
  describe(`the Envoy and the product of the overlay ${overlay}`, () => {
    const files = useRunning(async () => {
      const files = await layOutFiles(await render(`k8s/overlays/${overlay}`));
      return { ...files, stop: () => undefined };
    });
    const lab = useRunning(async () => {
      const { issuers: _theirs, admin: _port, ...config } = parse(await readFile(files.config, 'utf8'));
      return startLab({ ...config, listen: '127.0.0.1:0' });
    });
    const envoy = useRunning(async () => {
      const bootstrap = await readFile(String(files.bootstrap), 'utf8');
      return startEnvoy({ bootstrap, authz: lab.service.address, upstream: lab.upstream.port });
    });
    beforeEach(() => lab.upstream.clear());

    const ask = async (target: string, ...lines: readonly string[]) => {
      const answer = await exchange(envoy.port, requestBytes('GET', target, lines));
      return [answer.status, reasonOf(answer)].filter(each => each !== undefined).join(' ');
    };

    it('allow a good token, and give the app its identity in the place of a forged one', async () => {
      const lines = [`Authorization: ${await bearer()}`, 'X-Auth-Acc: acct2', 'x-auth-admin: true'];
      expect(await ask(own, ...lines)).to.equal('200');
      expect(ownedFields(onlyRequestOf(lab.upstream))).to.deep.equal(identity);
    });

    it('refuse everything else before the app sees it', async () => {
      const authorization = `Authorization: ${await bearer()}`;
      const refused = [
        [own, [], '401 token_missing'],
        [own, ['Authorization: Bearer x.y.z'], '401 token_invalid'],
        ['/api/subscriptions/accounts/acct2/items', [authorization], '403 account_mismatch'],
        [own, [authorization, 'X-Account-Id: acct2'], '403 account_mismatch'],
        [`${own}?account_id=acct2`, [authorization], '403 account_mismatch'],
        ['/api/subscriptionsX', [authorization], '404'],
        ['/api%2Fsubscriptions', [], '400'],
      ] as const;
      for (const [target, lines, expected] of refused) expect(await ask(target, ...lines), target).to.equal(expected);
      expect(lab.upstream.requests).to.deep.equal([]);
    });

    it('refuse with 503 while account-authz is away', async () => {
      await lab.service.stop();
      expect(await ask(own, `Authorization: ${await bearer()}`)).to.equal('503');
      expect(lab.upstream.requests).to.deep.equal([]);
    });
  });
}
