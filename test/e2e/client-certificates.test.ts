// docs/client-certificates.md: a token that is bound to a client certificate, through real Envoys that ask clients for theirs.
import { createHash, X509Certificate } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { get } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect } from 'chai';
import { type Document, parse } from 'yaml';
import { readSnippet } from '../../lab/document.ts';
import { envoyVersions } from '../../lab/envoy.ts';
import { connectionManagerPath } from '../../lab/envoy-bootstrap.ts';
import { type TestCertificate, testCertificate } from '../../lab/test-certificate.ts';
import { until } from '../../lab/until.ts';
import { freshFolder } from '../support/fresh-folder.ts';
import { useRunning } from '../support/use-running.ts';
import { bearer, reasonOf, useLab } from './lab.ts';

const authority = testCertificate({ name: 'clients', isAuthority: true });
const [own, other] = ['own', 'other'].map(name => testCertificate({ name, authority }));

for (const version of envoyVersions) {
  describe(`a token that is bound to a client certificate, behind Envoy ${version}`, () => {
    const suite = useLab();
    const { lab } = suite;
    const folder = freshFolder();
    let bound: string;
    const envoy = useRunning(async () => {
      const server = testCertificate({ name: 'server' });
      const files = { 'tls.crt': server.cert, 'tls.key': server.key, 'clients.crt': authority.cert };
      for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
      const thumbprint = createHash('sha256').update(new X509Certificate(own?.cert ?? '').raw);
      bound = await bearer({ cnf: { 'x5t#S256': thumbprint.digest('base64url') } });
      return suite.startRendered([], { version, edit: addTls });
    });

    function addTls(bootstrap: Document): void {
      const snippet = readSnippet('docs/client-certificates.md', 'yaml', 'require_client_certificate');
      const { transport_socket: socket } = parse(snippet.replaceAll('/etc/envoy/tls', folder));
      // So that a client may present none.
      socket.typed_config.require_client_certificate = false;
      const chain = connectionManagerPath(bootstrap).slice(0, -3);
      bootstrap.setIn([...chain, 'transport_socket'], bootstrap.createNode(socket));
    }

    function statusOf(authorization: string, client: TestCertificate | undefined): Promise<string> {
      const options = { ...client, rejectUnauthorized: false, agent: false, headers: { authorization } };
      return new Promise((resolve, reject) => {
        get(`https://127.0.0.1:${envoy.port}/api/subscriptions`, options, answer => {
          text(answer).then(body => resolve(`${answer.statusCode} ${reasonOf({ body }) ?? ''}`.trim()), reject);
        }).on('error', reject);
      });
    }

    it('is served to the client with that certificate alone, verified before or not', async () => {
      expect(await statusOf(bound, other)).to.equal('401 token_invalid');
      expect(await statusOf(bound, own)).to.equal('200');
      expect(await statusOf(bound, other)).to.equal('401 token_invalid');
      expect(await statusOf(bound, undefined)).to.equal('401 token_invalid');
      expect(await statusOf(bound, own)).to.equal('200');
      expect(lab.upstream.requests).to.have.length(2);
      const details = () => lab.service.log().flatMap(line => (typeof line.detail === 'string' ? line.detail : []));
      await until(() => details().length === 3);
      expect(details()).to.deep.equal([
        'cnf names another certificate than that of the client',
        'cnf names another certificate than that of the client',
        'cnf names a certificate, and the check shows none',
      ]);
    });

    it('is none without cnf, whatever the client presents', async () => {
      const plain = await bearer();
      for (const client of [own, other, undefined]) expect(await statusOf(plain, client)).to.equal('200');
    });
  });
}
