// Reason and detail of a refusal → the check that refused and its remedy, as the definition of the refusal has them.
import { type CheckName, checks, type DetailTemplate } from '../../authz/checks.ts';
import type { Reason } from '../../authz/refusal.ts';

export interface RefusedCheck {
  readonly check: CheckName | 'service';
  /** Undefined if this version does not know the detail. */
  readonly template: DetailTemplate | undefined;
  readonly remedy: string;
}

/** A detail of another version is put at the first check that has the reason: nothing is called passed that may not have been. */
export function findRefusedCheck(reason: Reason, detail: string): RefusedCheck {
  const refusals = (Object.keys(checks) as (keyof typeof checks)[]).flatMap(check => {
    const byReason: Partial<Record<Reason, Partial<Record<DetailTemplate, string>>>> = checks[check];
    const remedies = Object.entries(byReason[reason] ?? {}) as [DetailTemplate, string][];
    return remedies.map(([template, remedy]) => ({ check, template, remedy }));
  });
  const [first] = refusals;
  if (first === undefined) throw new Error('a reason that no check has');
  return (
    refusals.find(({ template }) => template === detail) ??
    refusals.find(({ template }) => isMadeFrom(template, detail)) ?? {
      check: first.check,
      template: undefined,
      remedy: 'this version of explain knows no more about it',
    }
  );
}

function isMadeFrom(template: string, detail: string): boolean {
  const [before = '', after] = template.split('{}');
  return after !== undefined && detail.startsWith(before) && detail.slice(before.length).endsWith(after);
}
