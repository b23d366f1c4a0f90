// Cases without a test, each with the reason. Remove an entry when its case gets a test.
const figures = 'A figure of time or of processor says more about the machine than about the code; bench/ measures it.';

export const leftOut: ReadonlyMap<string, string> = new Map([
  [
    'J-083',
    'The contract bounds the size and the exponent of RSA keys only: the authentication service is trusted to make good keys.',
  ],
  [
    'G-026',
    'Cannot be expressed: a check returns one value or one promise, and grpc-server.ts alone calls the callback of grpc-js, at one place for each.',
  ],
  [
    'F-019',
    'Mutation testing changes the code and runs the tests for each change: a command of its own, not one of the tests.',
  ],
  [
    'L-009',
    `${figures} SECURITY.md says that the time of a refusal tells where it was refused, and that no secret depends on it; I4 compares the bytes.`,
  ],
  ['L-013', figures],
]);
