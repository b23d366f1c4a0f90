// Runs the steps of a demo: executes each step, prints its line, and counts the steps that are as expected.
import { createTerminal, type StepLine } from './terminal.ts';

export interface Section {
  readonly title: string;
  readonly steps: readonly Step[];
}

export interface Step {
  readonly name: string;
  readonly expected: string;
  act(): Promise<Outcome>;
}

export interface Outcome {
  /** The step succeeds if it equals `expected`. */
  readonly actual: string;
  /** Lines to show under the step. */
  readonly notes?: readonly string[];
}

/** Resolves with the exit code: 0 if every step is as expected, else 1; or that of `interrupted`, if this resolves first. */
export async function runSections(
  sections: readonly Section[],
  interrupted: Promise<number> = new Promise(() => undefined),
): Promise<number> {
  const steps = sections.flatMap(section => section.steps);
  const terminal = createTerminal({
    step: Math.max(...steps.map(step => step.name.length)),
    expected: Math.max(...steps.map(step => step.expected.length)),
  });
  terminal.heads();
  const failed: StepLine[] = [];
  for (const [index, section] of sections.entries()) {
    terminal.title(`${index + 1}  ${section.title}`);
    for (const step of section.steps) {
      const line = await Promise.race([runStep(step), interrupted]);
      if (typeof line === 'number') return line;
      if (!line.ok) failed.push(line);
      terminal.step(line);
    }
  }
  terminal.verdict(`${steps.length - failed.length} of ${steps.length} steps as expected`, failed.length === 0);
  for (const line of failed) terminal.step(line);
  return failed.length === 0 ? 0 : 1;
}

async function runStep({ name, expected, act }: Step): Promise<StepLine> {
  const { actual, notes = [] } = await act().catch((error): Outcome => ({ actual: messageOf(error) }));
  return { name, expected, actual, ok: actual === expected, notes };
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
