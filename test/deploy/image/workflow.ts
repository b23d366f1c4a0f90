// Reads a GitHub Actions workflow, and the rules for ours.
import { parse } from 'yaml';

export interface Workflow {
  readonly on: Readonly<Record<string, unknown>>;
  readonly permissions?: unknown;
  readonly jobs: Readonly<Record<string, Job>>;
}

export interface Job {
  readonly 'timeout-minutes'?: number;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly needs?: string;
  readonly uses?: string;
  readonly strategy?: { readonly matrix?: Readonly<Record<string, readonly unknown[]>> };
  readonly steps?: readonly Step[];
}

export interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

export function parseWorkflow(text: string): Workflow {
  return parse(text);
}

export function stepsOf(workflow: Workflow): Step[] {
  return Object.values(workflow.jobs).flatMap(({ steps = [] }) => steps);
}

/** Steps that use an action, at any commit. */
export function usesOf(workflow: Workflow, action: string): Step[] {
  return stepsOf(workflow).filter(({ uses }) => uses?.startsWith(`${action}@`) === true);
}

export function workflowProblems(text: string): string[] {
  const workflow = parseWorkflow(text);
  const isRelease = Object.keys(workflow.on).join() === 'push' && isForTagsOnly(workflow.on.push);
  const lines = text.split('\n').filter(line => /^\s*(?:- )?uses:/.test(line));
  return [
    ...lines
      .filter(line => !/uses: (?:\.\/\S+|[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$/.test(line))
      .map(line => `not pinned: ${line.trim()}`),
    ...(JSON.stringify(workflow.permissions) === '{}' ? [] : ['permissions are not empty for a start']),
    ...Object.entries(workflow.jobs).flatMap(([name, job]) => jobProblems(name, job, isRelease)),
    ...stepsOf(workflow)
      .filter(({ run }) => run?.includes('${{') === true)
      .map(({ run = '' }) => `a script with an expression in it: ${run.split('\n')[0]}`),
    ...usesOf(workflow, 'actions/checkout')
      .filter(step => step.with?.['persist-credentials'] !== false)
      .map(() => 'a checkout leaves its credentials'),
    ...usesOf(workflow, 'docker/build-push-action')
      .filter(step => step.with?.push !== isRelease)
      .map(() => (isRelease ? 'a release pushes nothing' : 'something is pushed without a tag')),
    ...(isRelease
      ? []
      : stepsOf(workflow)
          .filter(isSigning)
          .map(() => 'something is published without a tag')),
  ];
}

function jobProblems(name: string, job: Job, isRelease: boolean): string[] {
  const writes = Object.entries(job.permissions ?? {}).filter(([, level]) => level !== 'read');
  const allowed = isRelease ? ['packages', 'id-token'] : [];
  return [
    ...(job.permissions === undefined ? [`${name} does not name its permissions`] : []),
    ...(job['timeout-minutes'] === undefined && job.uses === undefined ? [`${name} has no time limit`] : []),
    ...writes.filter(([permission]) => !allowed.includes(permission)).map(([each]) => `${name} may write ${each}`),
  ];
}

function isForTagsOnly(push: unknown): boolean {
  return typeof push === 'object' && push !== null && Object.keys(push).join() === 'tags';
}

function isSigning({ uses, run }: Step): boolean {
  return uses?.includes('login-action') === true || /\bcosign\b|\bpush\b/.test(run ?? '');
}
