// The serve command: refused configurations, unknown commands, and preloaded modules.
import { expect } from 'chai';
import { runCommand, runProduct } from '../../lab/command.ts';
import { changed, smallestConfig, writeFixture } from '../../lab/config-file.ts';
import { startServiceProcess } from '../../lab/service-process.ts';
import { nghttp2Warning } from '../../src/service/nghttp2.ts';
import { useRunning } from '../support/use-running.ts';
import { configuration, startIssuer } from './lab.ts';

describe('serve', () => {
  it('L-024 exits 1 with one line per problem for an invalid configuration', async () => {
    const file = writeFixture('weak.json', changed({ 'issuers.0.algorithms': ['none'], roles: {} }));
    const { code, stdout, stderr } = await runProduct(['serve', '--config', file]);
    expect({ code, stdout }).to.deep.equal({ code: 1, stdout: '' });
    expect(stderr.trim().split('\n')).to.have.lengthOf(2);
    expect(stderr).to.contain('issuers[0].algorithms[0]').and.contain('roles');
  });

  // A reload logs only the first 20.
  it('prints all problems of an invalid configuration', async () => {
    const unknown = Object.fromEntries(Array.from({ length: 25 }, (_, number) => [`unknown${number}`, 1]));
    const file = writeFixture('many.json', { ...smallestConfig(), ...unknown });
    const { code, stderr } = await runProduct(['serve', '--config', file]);
    expect(code).to.equal(1);
    expect(stderr.trim().split('\n')).to.have.lengthOf(25);
  });

  it('refuses a jwksFile without a usable key with the text of check-config', async () => {
    const jwksFile = writeFixture('oct.json', { keys: [{ kty: 'oct', k: 'AA', kid: 'a' }] });
    const config = changed({ 'issuers.0.jwksUrl': undefined, 'issuers.0.jwksFile': jwksFile });
    const file = writeFixture('no-key.json', config);
    const { code, stderr } = await runProduct(['serve', '--config', file]);
    expect(code).to.equal(1);
    expect(stderr).to.contain('issuers[0].jwksFile: the file has no usable key: ');
    expect(await runCommand('check-config', ['--config', file])).to.deep.include({ code: 1, stderr });
  });

  it('L-003 escapes and truncates the name of an unknown command', async () => {
    const { code, stderr } = await runProduct([`\u009b31m\u202e"${'x'.repeat(5000)}`]);
    expect(code).to.equal(1);
    expect(stderr).to.match(
      /^account-authz: unknown command "\\u\{9b\}31m\\u\{202e\}\\"x{50,100}…": account-authz --help lists the commands\n$/,
    );
  });
});

describe('serve on this Node', () => {
  const warning = nghttp2Warning();
  const issuer = useRunning(startIssuer);

  it(`logs ${warning === undefined ? 'nothing about its nghttp2' : 'its old nghttp2 once'}`, async () => {
    const service = await startServiceProcess(configuration(issuer.jwksUrl));
    try {
      const lines = service.log().filter(({ msg }) => msg === 'old nghttp2');
      expect(lines.map(({ level, problem }) => ({ level, problem }))).to.deep.equal(
        warning === undefined ? [] : [{ level: 'warn', problem: warning }],
      );
    } finally {
      await service.kill();
    }
  });
});
