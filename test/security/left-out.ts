// Cases that have no test, each with the reason. A case that gets a test goes from here.
export const leftOut: ReadonlyMap<string, string> = new Map([]);
