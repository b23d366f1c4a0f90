import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { type Reason, refusalAnswers } from '../../src/authz/refusal.ts';
import { type CheckName, checkNames } from '../../src/explain/checks.ts';
import { findRefusedCheck, isKnownDetail } from '../../src/explain/refused-checks.ts';

const source = fileURLToPath(new URL('../../src/', import.meta.url));

interface Refused {
  readonly reason: string;
  readonly detail: string;
}

/** Every refusal in the code; what a template fills in stands as `word`. */
function refusalsInCode(): Refused[] {
  const textOf = (folder: string): string =>
    readdirSync(join(source, folder))
      .filter(name => name.endsWith('.ts'))
      .map(name => readFileSync(join(source, folder, name), 'utf8'))
      .join('\n');
  const code = ['authz', 'token', '.'].map(textOf).join('\n');
  const keys = textOf('keys');
  const [whyUnavailable = ''] = /function whyUnavailable[\s\S]*?\n\}/.exec(keys) ?? [];
  const request = readFileSync(join(source, 'envoy/request.ts'), 'utf8');
  const found = (text: string, pattern: RegExp, reason: string): Refused[] =>
    Array.from(text.matchAll(pattern), match => ({ reason, detail: match.groups?.detail ?? '' }));
  return [
    ...Array.from(code.matchAll(/refusal\(\s*'(\w+)',\s*(['`])(.+?)\2/g), ([, reason = '', , detail = '']) => ({
      reason,
      detail,
    })),
    ...found(code, /\binvalid\((['`])(?<detail>.+?)\1/g, 'token_invalid'),
    ...found(keys, /kind: 'unavailable', detail: (['`])(?<detail>.+?)\1/g, 'keys_unavailable'),
    ...found(whyUnavailable, /return (['`])(?<detail>.+?)\1/g, 'keys_unavailable'),
    ...found(
      request,
      /(?:return|: ) ?(['`])(?<detail>[^'`]*(?:contradict|disagree|two values|beside the path|no HTTP|more than)[^'`]*)\1/g,
      'request_invalid',
    ),
  ].map(({ reason, detail }) => ({ reason, detail: filledIn(detail) }));
}

function filledIn(detail: string): string {
  const placeholders: Readonly<Record<string, string>> = { field: 'acc', maxHeaders: '200', maxParameters: '256' };
  return detail.replace(/\$\{(\w+)[^}]*\}/g, (_, name: string) => placeholders[name] ?? 'word');
}

describe('refused checks', () => {
  const refusals = refusalsInCode();

  it('are read from the code, all of them', () => {
    expect(refusals).to.deep.include.members([
      { reason: 'route_unknown', detail: 'no route matches' },
      { reason: 'token_expired', detail: 'exp has passed' },
      { reason: 'token_invalid', detail: 'header: word' },
      { reason: 'token_invalid', detail: 'acc is outside the grammar' },
      { reason: 'keys_unavailable', detail: 'no key set yetword' },
      { reason: 'keys_unavailable', detail: 'the refresh takes longer than word ms' },
      { reason: 'request_invalid', detail: ':path contradicts the path' },
      { reason: 'request_invalid', detail: 'no HTTP attributes' },
      { reason: 'request_invalid', detail: 'more than 200 headers' },
      { reason: 'request_invalid', detail: 'more than 256 query parameters' },
      { reason: 'internal', detail: 'a fault, see the log line before this one' },
    ]);
    expect(new Set(refusals.map(({ reason }) => reason))).to.deep.equal(new Set(Object.keys(refusalAnswers)));
    expect(refusals.length).to.be.greaterThan(60);
  });

  it('have a row for each detail that the code refuses with', () => {
    expect(refusals.filter(({ detail }) => !isKnownDetail(detail))).to.deep.equal([]);
  });

  for (const reason of Object.keys(refusalAnswers) as Reason[]) {
    it(`put a detail of ${reason} that they do not know at the first check that it can come from`, () => {
      const own = refusals.filter(refused => refused.reason === reason);
      const checks = own.map(({ detail }) => findRefusedCheck(reason, detail).check);
      const [first] = checks.toSorted((one, other) => place(one) - place(other));
      expect(findRefusedCheck(reason, 'what a later version says').check).to.equal(first);
    });
  }
});

function place(check: CheckName | 'service'): number {
  return check === 'service' ? -1 : checkNames.indexOf(check);
}
