// The cases of `account-authz test`: a table of requests and the decision that is expected for each.
import * as z from 'zod';
import { refusalAnswers } from '../../authz/refusal.ts';
import { type Misconfiguration, misconfiguration, toProblem, toProblems, unreadable } from '../../config/problems.ts';
import { list, mapping, report, text } from '../../config/value-schemas.ts';
import { parseYamlDocument } from '../../config/yaml-document.ts';
import type { FileContent } from '../../files/bounded-file.ts';
import { parseInstant } from '../../text/instant.ts';
import { isHeaderName, isHeaderValue } from '../offline/check-request.ts';

/** `allowed`, or the reason of a refusal. */
const outcomes: readonly string[] = ['allowed', ...Object.keys(refusalAnswers)];
const outcomeRule = `must be one of ${outcomes.join(', ')}`;
const outcome = text(word => (outcomes.includes(word) ? undefined : outcomeRule));

/** What a case may expect of the caller; null: that there is none. */
export const expectedFields = ['acc', 'role', 'scope', 'actor'] as const;
const field = z.string().nullable().optional();

const detailedRule = '{ reason, acc, role, scope, actor }';
const expectation = z.union(
  [
    outcome.transform(reason => ({ reason })),
    mapping({ reason: outcome, acc: field, role: field, scope: field, actor: field }),
  ],
  { error: ({ input }) => (input === undefined ? 'is required' : `${outcomeRule}, or ${detailedRule}`) },
);

export type Expectation = z.output<typeof expectation> & {
  readonly [Field in (typeof expectedFields)[number]]?: string | null | undefined;
};

function headerProblem(name: string, value: unknown): string | undefined {
  if (!isHeaderName(name)) return 'must be a header name such as x-account-id';
  if (name.toLowerCase() === 'host') return 'must not be host: use request.host';
  if (name.toLowerCase() === 'authorization') return 'must not be authorization: use claims or token';
  const lines: readonly unknown[] = Array.isArray(value) ? value : [value];
  const isValid = lines.length > 0 && lines.every(line => typeof line === 'string' && isHeaderValue(line));
  return isValid ? undefined : 'must be text without control characters, or a list of it: put a number in quotes';
}

const headers = z
  .record(z.string(), z.unknown())
  .superRefine((value, context) => {
    for (const [name, each] of Object.entries(value)) report(context, headerProblem(name, each), [name]);
  })
  .transform(value =>
    Object.entries(value).flatMap(([name, each]) =>
      (Array.isArray(each) ? each : [each]).map(line => [name.toLowerCase(), String(line)] as const),
    ),
  );

const instant = z.unknown().transform((value, context) => {
  const seconds = typeof value === 'string' || typeof value === 'number' ? parseInstant(String(value)) : undefined;
  if (seconds !== undefined) return seconds;
  context.addIssue({ code: 'custom', message: 'must be a time: RFC 3339, or seconds since 1970' });
  return z.NEVER;
});

const policyCase = mapping({
  name: text(name => (name.trim() === '' ? 'must not be empty' : undefined)),
  claims: z.record(z.string(), z.unknown()).optional(),
  token: z.string().optional(),
  request: mapping({
    method: z.string().default('GET'),
    path: z.string(),
    host: text(host => (isHeaderValue(host) ? undefined : 'must be a host without control characters')).optional(),
    headers: headers.default([]),
  }),
  expect: expectation,
  at: instant.optional(),
}).superRefine(({ claims, token }, context) => {
  if (claims !== undefined && token !== undefined)
    report(context, 'must not be set together with claims: remove one', ['token']);
});

const casesSchema = mapping({
  cases: list(policyCase, {
    noun: 'case',
    sameBy: each => (typeof each === 'object' && each !== null && 'name' in each ? each.name : undefined),
    repeatedAt: 'name',
  }),
});

/** A request has a token of `claims`, the given `token`, or none. `at` is in seconds since the epoch; by default the time of the run. */
export type PolicyCase = z.output<typeof policyCase>;

/** `needsHost`: each request must have one. A million bytes of hostile YAML is the user's own; the file is bounded as a configuration is. */
export function parseCases(
  content: FileContent,
  { needsHost }: { readonly needsHost: boolean },
): { readonly kind: 'cases'; readonly cases: readonly PolicyCase[] } | Misconfiguration {
  if (content.kind === 'problem') return unreadable(content.problem);
  const document = parseYamlDocument(content.bytes, { maxValues: 100_000 });
  const problems = document.problems.map(toProblem);
  if (document.kind === 'problems') return misconfiguration(problems);
  const parsed = casesSchema.safeParse(document.value, { reportInput: true });
  problems.push(...toProblems(parsed.error?.issues ?? [], document));
  for (const [i, { request }] of parsed.data?.cases.entries() ?? []) {
    if (!needsHost || request.host !== undefined) continue;
    const path = ['cases', i, 'request', 'host'];
    const message = 'is required: account.hosts of the configuration names the hosts that requests may be for';
    problems.push(toProblem({ path, position: document.positionOf(path.slice(0, -1), 'value'), message }));
  }
  if (!parsed.success || problems.length > 0) return misconfiguration(problems);
  return { kind: 'cases', cases: parsed.data.cases };
}
