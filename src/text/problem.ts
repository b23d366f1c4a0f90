// A problem as a value, and the code of a system error.

/** What is wrong with one thing: with a file, an address, an option. */
export interface Problem<Text extends string = string> {
  readonly kind: 'problem';
  /** A sentence, or the rest of one that starts with the thing. */
  readonly problem: Text;
}

export function problem<Text extends string>(text: Text): Problem<Text> {
  return { kind: 'problem', problem: text };
}

/** For an error that ends a command. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The code of an error of Node: `ENOENT`. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
