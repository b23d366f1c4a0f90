// What is wrong with an entry of the configuration that this folder reads: a route template or a host.

/** Has the shape of `Problem`. Declared here because authz/ imports no other folder. */
export interface NotationProblem {
  readonly kind: 'problem';
  /** The rest of a sentence about the entry: "must start with /". */
  readonly problem: string;
}

export function notationProblem(text: string): NotationProblem {
  return { kind: 'problem', problem: text };
}
