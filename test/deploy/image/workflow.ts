// Reads a GitHub Actions workflow.
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
