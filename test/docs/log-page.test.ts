// docs/log.md: the fields of a decision line, and every message of src/ with its level.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { secrets } from '../../lab/secrets.ts';
import { toPrincipal } from '../../src/authz/principal.ts';
import { createLogger, logCheck } from '../../src/service/log.ts';
import { account, identity } from '../support/facts.ts';

const project = new URL('../../', import.meta.url);
const page = readFileSync(new URL('docs/log.md', project), 'utf8');

/** The cells of the tables after a heading, without the code marks of the first two. */
function rowsAfter(heading: string): readonly (readonly string[])[] {
  const [, part = ''] = page.split(`\n## ${heading}`);
  const [section = ''] = part.split('\n## ');
  return section
    .split('\n')
    .filter(line => line.startsWith('| `'))
    .map(line => line.slice(2).split(' | '))
    .map(([first = '', second = '', ...rest]) => [first.replaceAll('`', ''), second, ...rest]);
}

/** Each message of the product, as `level message`. */
function messages(): ReadonlySet<string> {
  const sources = readdirSync(new URL('src/', project), { recursive: true, encoding: 'utf8' })
    .filter(name => name.endsWith('.ts'))
    .map(name => readFileSync(new URL(`src/${name}`, project), 'utf8'));
  const calls = /\blogger\.(\w+)\((?:[^'\n]+, )?'([^'\n]+)'\)/g;
  const lines = /level: '(\w+)',\n[^}]*\bmsg: '([^']+)'/g;
  return new Set(
    sources.flatMap(text =>
      [calls, lines].flatMap(pattern => Array.from(text.matchAll(pattern), ([, level, msg]) => `${level} ${msg}`)),
    ),
  );
}

const who = { ...identity({ acc: 'a', actor: 's', jti: 'j' }), iss: 'https://issuer.test' };

describe('docs/log.md', () => {
  it('has the fields of a decision line, in their order', () => {
    const written: string[] = [];
    const settings = { level: 'info', allowed: true };
    logCheck(createLogger(settings, { write: line => void written.push(line) }), settings, {
      requestId: 'r1',
      decision: 'deny',
      reason: 'role_forbidden',
      detail: 'the role may not use this method',
      found: undefined,
      method: 'DELETE',
      route: '/api/subscriptions',
      principal: toPrincipal(who, account('a'), 'member', 'billing'),
      kid: 'k1',
      cache: 'hit',
      durationMs: 1,
      traceId: 't',
      traceparent: undefined,
      tracestate: undefined,
    });
    secrets.show('log', written.join(''));
    const fields = Object.keys(JSON.parse(written.join('')) as object);
    const documented = rowsAfter('`check`').map(([name]) => name);
    expect(['level', 'time', ...documented, 'msg']).to.deep.equal(fields);
  });

  it('has every message of the product, with its level', () => {
    const documented = rowsAfter('All other lines').map(([msg, level]) => `${level} ${msg}`);
    expect([...documented, 'info check', 'warn check'].toSorted()).to.deep.equal([...messages()].toSorted());
  });
});
