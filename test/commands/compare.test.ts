// The compare command: its operands, output and exit codes.
import { expect } from 'chai';
import { runCommand } from '../../lab/command.ts';
import { changed, smallestConfig, writeFixture } from '../../lab/config-file.ts';

const old = writeFixture('compare-old.yaml', smallestConfig());
const more = writeFixture('compare-more.yaml', changed({ 'roles.member': ['GET'], 'keys.maxAgeSeconds': 7200 }));
const other = writeFixture('compare-other.yaml', changed({ 'token.from': [{ header: 'x-id-token' }] }));
const moved = writeFixture('compare-moved.yaml', changed({ listen: '127.0.0.1:9999' }));
const broken = writeFixture('compare-broken.yaml', changed({ 'issuers.0.audiences': [] }));

const run = (args: readonly string[], input = '') => runCommand('compare', args, { input });

describe('compare', () => {
  const codes: readonly (readonly [what: string, args: readonly string[], code: number])[] = [
    ['no difference', [old, old, '--strict'], 0],
    ['more', [old, more], 3],
    ['less', [more, old], 0],
    ['less, --strict', [more, old, '--strict'], 3],
    ['other', [old, other], 0],
    ['other, --strict', [old, other, '--strict'], 3],
    ['what cannot be ordered', [old, moved], 3],
    ['one operand', [old], 1],
    ['both from standard input', ['-', '-'], 1],
    ['two forms', [old, more, '--json', '--markdown'], 1],
    ['three operands', [old, more, more], 1],
  ];
  for (const [what, args, code] of codes)
    it(`exits ${code}: ${what}`, async () => {
      expect((await run(args)).code).to.equal(code);
    });

  it('prints a row for each difference with its example, and the counts', async () => {
    expect((await run([old, more])).stdout.split('\n')).to.deep.equal([
      'more  role member  GET  /api/subscriptions/*  was role_forbidden',
      '    {"claims":{"uid":"alice","app":"web","acc":"acme","role":"member"},"request":{"method":"GET","path":"/api/subscriptions"}}',
      'more  keys.maxAgeSeconds  3600 → 7200',
      '2 more, 0 less, 0 other, 0 unordered',
      '',
    ]);
  });

  it('reads one of the two from standard input, wherever the other lies', async () => {
    const { stdout } = await run(['-', more, '--json'], JSON.stringify(smallestConfig()));
    const { more: rows, complete } = JSON.parse(stdout);
    expect(complete).to.equal(true);
    expect(rows).to.have.length(2);
    expect(rows[0]).to.deep.include({ kind: 'more', role: 'member', methods: ['GET'], path: '/api/subscriptions/*' });
  });

  it('names which of the two is invalid, and where', async () => {
    const { code, stderr } = await run(['-', broken], '{}');
    expect(code).to.equal(1);
    expect(stderr).to.match(/^OLD standard input:1:1: issuers: is required\n/m);
    expect(stderr).to.match(/^NEW \S+broken\.yaml:1:\d+: issuers\[0\]\.audiences: /m);
  });
});
