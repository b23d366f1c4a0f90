// What every telling of the story shares: a step becomes a line, chapters get their columns, an error its words.
import type { Chapter, Outcome, Step } from './story.ts';
import { createTerminal, type StepLine, type Terminal } from './terminal.ts';

export async function lineOf(step: Step): Promise<StepLine> {
  const { actual, notes = [] } = await step.act().catch((error): Outcome => ({ actual: messageOf(error) }));
  return { name: step.name, expected: step.expected, actual, ok: actual === step.expected, notes };
}

export function terminalFor(chapters: readonly Chapter[]): Terminal {
  const steps = chapters.flatMap(chapter => chapter.steps);
  const columns = {
    step: Math.max(0, ...steps.map(step => step.name.length)),
    expected: Math.max(0, ...steps.map(step => step.expected.length)),
  };
  const isTerminal = process.stdout.isTTY === true;
  const noColour = process.env.NO_COLOR !== undefined && process.env.NO_COLOR !== '';
  return createTerminal(process.stdout, columns, { colour: isTerminal && !noColour, overwrite: isTerminal });
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
