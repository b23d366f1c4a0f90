// Reason and detail of a refusal → the check that refused and its remedy, as the definition of the refusal has them.
import { type CheckName, checks, type DetailTemplate } from '../../authz/checks.ts';
import type { Reason } from '../../authz/refusal.ts';

export interface RefusedCheck {
  readonly check: CheckName | 'service';
  readonly template: DetailTemplate;
  readonly remedy: string;
}

export function findRefusedCheck(reason: Reason, detail: string): RefusedCheck {
  const refusals = (Object.keys(checks) as (keyof typeof checks)[]).flatMap(check => {
    const byReason: Partial<Record<Reason, Partial<Record<DetailTemplate, string>>>> = checks[check];
    const remedies = Object.entries(byReason[reason] ?? {}) as [DetailTemplate, string][];
    return remedies.map(([template, remedy]) => ({ check, template, remedy }));
  });
  const refused =
    refusals.find(({ template }) => template === detail) ??
    refusals.find(({ template }) => isMadeFrom(template, detail));
  if (refused === undefined) throw new Error('a detail that no check has');
  return refused;
}

function isMadeFrom(template: string, detail: string): boolean {
  const [before = '', after] = template.split('{}');
  return after !== undefined && detail.startsWith(before) && detail.slice(before.length).endsWith(after);
}
