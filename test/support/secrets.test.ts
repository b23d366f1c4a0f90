// The secret scan finds planted secrets, has no false positives, and gets every output of the product.
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { createSecretWatch, type SecretKind, secrets } from '../../lab/secrets.ts';
import { testCertificate } from '../../lab/test-certificate.ts';
import { claims, token } from '../../lab/token.ts';

const project = fileURLToPath(new URL('../../', import.meta.url));

describe('the secret scan', () => {
  const places: readonly (readonly [name: string, shown: (token: string) => string])[] = [
    ['the whole token', text => `{"authorization":"Bearer ${text}"}`],
    ['its payload', text => text.split('.')[1] ?? ''],
    ['a part of its payload', text => (text.split('.')[1] ?? '').slice(30, 80)],
    ['its signature', text => `x=${text.split('.')[2]};`],
    ['a part of its signature', text => (text.split('.')[2] ?? '').slice(5, 60)],
    ['its header', text => text.split('.')[0] ?? ''],
    ['its bytes as JSON', text => JSON.stringify({ raw_value: Buffer.from(text) })],
    ['its bytes as inspected', text => `<Buffer ${Buffer.from(text).toString('hex').replace(/../g, '$& ')}... >`],
    ['its bytes in hexadecimal', text => Buffer.from(text).toString('hex')],
    ['its bytes in base64', text => JSON.stringify({ rawValue: Buffer.from(`Bearer ${text}`).toString('base64') })],
  ];
  for (const [name, shown] of places) {
    it(`finds ${name} and does not repeat it`, async () => {
      const watch = createSecretWatch();
      const text = await token({ header: { note: randomBytes(30).toString('hex') } });
      watch.mint('token', text);
      watch.show('log', `before ${shown(text)} after`);
      const leaks = watch.leaks();
      expect(leaks).to.include('token in: log');
      expect(leaks.join()).to.not.contain(shown(text).slice(0, 24));
    });
  }

  it('finds a private key in both alphabets of base64', () => {
    const watch = createSecretWatch();
    const key = Buffer.alloc(48, Buffer.from([0xfb, 0xef, 0xbe, 0xff, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    watch.mint('private key', key.toString('base64url'));
    watch.show('command', key.toString('base64'));
    expect(watch.leaks()).to.deep.equal(['private key in: command']);
  });

  it('finds a private key in any line of its PEM text', () => {
    const { key } = testCertificate();
    for (const line of key.split('\n').filter(text => text.length > 40 && !text.startsWith('-----'))) {
      const watch = createSecretWatch();
      watch.mint('private key', key);
      watch.show('standard error', `tls.keyFile: what is ${line}?`);
      expect(watch.leaks()).to.deep.equal(['private key in: standard error']);
    }
  });

  const kinds: readonly SecretKind[] = ['claim', 'query string', 'header'];
  for (const kind of kinds) {
    it(`finds a ${kind} in every output, also where the identity may stand`, () => {
      const watch = createSecretWatch();
      const text = watch.fresh(kind);
      watch.show('log', `{"detail":"?a=${text}&b"}`);
      watch.show('trace', text);
      expect(watch.leaks()).to.deep.equal([`${kind} in: log`, `${kind} in: trace`]);
    });
  }

  it('finds a claim in a re-encoded payload', () => {
    const watch = createSecretWatch();
    const payload = JSON.stringify({ sub: 'x', jti: watch.fresh('claim'), acc: 'acct1' });
    watch.show('log', Buffer.from(payload).toString('base64url'));
    expect(watch.leaks()).to.include('claim in: log');
  });

  it('finds the identity of a verified token in an output that must not contain it, whatever came before', () => {
    const watch = createSecretWatch();
    const acc = watch.fresh('identity');
    for (const output of ['log', 'answer to Envoy', 'explanation', 'access log'] as const) watch.show(output, acc);
    expect(watch.leaks()).to.deep.equal([]);
    watch.show('HTTP answer', `checks_total{acc="${acc}"} 1`);
    watch.show('refusal', `/accounts/${acc}`);
    expect(watch.leaks()).to.deep.equal(['identity in: HTTP answer', 'identity in: refusal']);
  });

  it('finds a token that this process did not mint, and tells where it stood and how long it is', async () => {
    const watch = createSecretWatch();
    const [header = ''] = (await token()).split('.');
    watch.show('demo', header);
    watch.show('log', JSON.stringify({ level: 30, kid: 'k1', jti: header }));
    watch.show('trace', `{"token=${watch.fresh('claim')}":"authorization: Bearer ${header}"}`);
    const seen = `${header.length} characters`;
    expect(watch.leaks()).to.include.members([
      `something like a token in: demo (no member, ${seen})`,
      `something like a token in: log (jti, ${seen})`,
      `something like a token in: trace (authorization, ${seen})`,
    ]);
  });

  // `reasons.test.ts` failed once by the random `jti` of a token.
  it('takes no random identifier for a token', () => {
    const watch = createSecretWatch();
    watch.mint('identity', 'eyJ8kd0_QxZ3v-7LhYf1WnTb');
    watch.show('log', '{"jti":"eyJ8kd0_QxZ3v-7LhYf1WnTb"}');
    expect(watch.leaks()).to.deep.equal([]);
  });

  it('has no false positives', async () => {
    const watch = createSecretWatch();
    watch.mint('token', await token());
    watch.mint('token', `${'A'.repeat(60)}.e30.AA`);
    watch.fresh('identity');
    watch.show('log', `${JSON.stringify(claims())} ${'A'.repeat(80)} ${randomBytes(40).toString('hex')}`);
    expect(watch.leaks()).to.deep.equal([]);
  });

  it('knows the tokens and keys of this run', async () => {
    const before = secrets.counts().secrets;
    await token();
    expect(secrets.counts().secrets).to.be.greaterThan(before);
  });
});

describe('every output that tests read', () => {
  const folder = join(project, 'test/');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.ts'));
  const silent = (obtains: RegExp): string[] =>
    files
      .filter(name => name !== 'support/secrets.test.ts')
      .filter(name => {
        const text = readFileSync(join(folder, name), 'utf8');
        return obtains.test(text) && !/secrets\.show\(/.test(text);
      })
      .sort();

  const rows: readonly (readonly [what: string, obtains: RegExp, others: readonly string[]])[] = [
    ['of a command', /from '[^']*src\/commands\/(?!command\.ts)/, []],
    // Both discard the log.
    ['of a log', /\bcreateLogger\(/, ['assurance/cost/whole-check.ts', 'service/failed-start.test.ts']],
    ['of an SDK of OpenTelemetry', /\bgetFinishedSpans\(\)|opentelemetry\.proto|ResourceSpans/, []],
    // One lists the tests with mocha; the others run nothing of the product.
    [
      'of a process of Node',
      /from 'node:child_process'[\s\S]*(?:process\.execPath|dist\/main\.js)/,
      [...['demo/authorizer-process.test.ts'], 'tools/check-regular-expressions.test.ts'],
    ],
  ];
  for (const [what, obtains, others] of rows) {
    it(`${what} goes to the secret scan`, () => {
      expect(silent(obtains)).to.deep.equal(others);
    });
  }
});
