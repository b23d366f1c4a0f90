// Finding the check that refused from the reason and the detail.
import { readdirSync, readFileSync } from 'node:fs';
import { expect } from 'chai';
import { checks } from '../../../src/authz/checks.ts';
import type { Reason } from '../../../src/authz/refusal.ts';
import { findRefusedCheck } from '../../../src/toolkit/explain/refused-checks.ts';

type Check = keyof typeof checks;

interface Definition {
  readonly check: Check;
  readonly reason: Reason;
  readonly template: string;
}

const definitions: readonly Definition[] = (Object.keys(checks) as Check[]).flatMap(check =>
  Object.entries(checks[check] as Partial<Record<Reason, Record<string, string>>>).flatMap(([reason, remedies]) =>
    Object.keys(remedies).map(template => ({ check, reason: reason as Reason, template })),
  ),
);

const source = new URL('../../../src/', import.meta.url);
const code = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter(name => name.endsWith('.ts') && name !== 'authz/checks.ts' && !name.startsWith('explain'))
  .map(name => readFileSync(new URL(name, source), 'utf8'))
  .join('\n');

describe('findRefusedCheck', () => {
  it('has definitions only for details that the code uses', () => {
    const unused = definitions.filter(
      ({ template }) => !template.split('{}').every(part => code.includes(part.trim())),
    );
    expect(unused).to.deep.equal([]);
  });

  for (const { check, reason, template } of definitions) {
    it(`finds the check ${check} by the detail: ${template}`, () => {
      const detail = template.replace('{}', 'a $& of others');
      expect(findRefusedCheck(reason, detail)).to.include({ check, template });
      expect(findRefusedCheck(reason, template.replace('{}', '')).check).to.equal(check);
    });
  }

  it('throws for a detail that only starts like a known one', () => {
    const rows = [
      ['request_invalid', 'path longer than 9 lines'],
      ['token_invalid', 'alg is not one of algorithms, nor of ours'],
      ['token_expired', 'no route matches'],
    ] as const;
    for (const [reason, detail] of rows) {
      expect(() => findRefusedCheck(reason, detail), detail).to.throw('a detail that no check has');
    }
  });
});
