// Sends generated requests through the product and compares each answer with the oracle's: counts answers, collects differences.
import { changeBytes } from './generator/byte-changes.ts';
import { baseTime } from './generator/identities.ts';
import { createRandom, type Random } from './generator/random.ts';
import { generateRequest } from './generator/requests.ts';
import { createSetup, type Setup } from './generator/setup.ts';
import type { GeneratedToken } from './generator/token-draft.ts';
import { alterToken, generateToken } from './generator/tokens.ts';
import { type Answer, differences, isAllow, reasonIn } from './oracle/answer.ts';
import { type Decision, decide } from './oracle/decision.ts';
import type { CheckMessage } from './oracle/message.ts';
import { readRequestBytes } from './oracle/request-bytes.ts';
import { type Product, startProduct } from './product.ts';
import { readAnswer, requestBytes } from './wire.ts';

export interface Difference {
  /** The options that generate the same request again: `--seed`, `--configuration`, `--request`. */
  readonly seed: number;
  readonly configuration: number;
  readonly request: number;
  readonly changes: readonly string[];
  readonly problems: readonly string[];
}

interface Tally {
  /** By the oracle's reason. */
  readonly counts: Map<string, number>;
  /** By the name of a change: its number. */
  readonly changes: Map<string, number>;
  /** Allowed requests with a change to them or to their token. */
  allowedThoughChanged: number;
  /** Requests with at most one change to the request and one to the token. */
  nearlyGood: number;
  /** Requests for which the contract permits several answers. */
  open: number;
}

export interface Comparison extends Tally {
  readonly requests: number;
  readonly configurations: number;
  readonly differences: readonly Difference[];
}

export interface ComparisonOptions {
  readonly requests: number;
  readonly seed: number;
  /** Only this configuration. */
  readonly configuration?: number;
}

// Few, so that a short run has many configurations, and with them every set of claim sources.
const requestsOfConfiguration = 640;
const batchSize = 64;

export async function compare(options: ComparisonOptions): Promise<Comparison> {
  const { requests, seed, configuration: only } = options;
  const tally: Tally = { counts: new Map(), changes: new Map(), allowedThoughChanged: 0, nearlyGood: 0, open: 0 };
  const found: Difference[] = [];
  // By reason, for the whole run: two answers of one reason differ in their request_id only.
  const words = new Map<string, string>();
  let done = 0;
  let configurations = 0;
  for (let i = only ?? 0; done < requests && found.length < 20; i += 1) {
    const count = Math.min(requestsOfConfiguration, requests - done);
    for (const difference of await compareConfiguration({ seed, configuration: i, count, tally, words }))
      found.push(difference);
    done += count;
    configurations += 1;
    if (only !== undefined) break;
  }
  return { ...tally, requests: done, configurations, differences: found };
}

interface ConfigurationRun {
  readonly seed: number;
  readonly configuration: number;
  readonly count: number;
  readonly tally: Tally;
  readonly words: Map<string, string>;
}

async function compareConfiguration({
  seed,
  configuration,
  count,
  tally,
  words,
}: ConfigurationRun): Promise<Difference[]> {
  const setup = createSetup(createRandom(seed, configuration), configuration);
  const product = await startProduct(setup.written, setup.keys);
  const found: Difference[] = [];
  try {
    const tokens: GeneratedToken[] = [];
    for (let first = 0; first < count; first += batchSize) {
      const batch = Array.from({ length: Math.min(batchSize, count - first) }, (_, i): Question => {
        const random = createRandom(seed, configuration, first + i);
        const token = pickToken(random, setup, tokens);
        const { message, changes } = generateRequest(random, setup, token);
        const asked = { request: first + i, token, now: pickTime(random, token) };
        if (random.chance(0.96))
          return { ...asked, bytes: requestBytes(message), message, isOdd: false, requestChanges: changes };
        const { bytes, change } = changeBytes(random, message);
        return {
          ...asked,
          bytes,
          message: readRequestBytes(bytes) ?? { attributes: null },
          isOdd: true,
          requestChanges: [...changes, change],
        };
      });
      for (const asked of await ask(product, batch)) {
        const { request, token, message, requestChanges, now, isOdd } = asked;
        const decided = decide(message, setup.settings, setup.keys, now);
        const decision: Decision = isOdd
          ? { ...decided, alsoPermitted: [...decided.alsoPermitted, 'request_invalid'] }
          : decided;
        const changes = [...token.changes, ...requestChanges];
        for (const name of changes) increase(tally.changes, name);
        increase(tally.counts, decision.reason);
        if (decision.reason === 'allowed' && changes.length > 0) tally.allowedThoughChanged += 1;
        if (token.changes.length <= 1 && requestChanges.length <= 1) tally.nearlyGood += 1;
        if (decided.alsoPermitted.length > 0) tally.open += 1;
        const problems = problemsOf(asked, decision, setup, words);
        if (problems.length > 0) found.push({ seed, configuration, request, changes, problems });
      }
      if (product.faults.length > 0)
        throw new Error('the product took something for a fault of its own', { cause: product.faults[0] });
    }
  } finally {
    await product.stop();
  }
  return found;
}

interface Question {
  /** Its index in the configuration. */
  readonly request: number;
  readonly token: GeneratedToken;
  readonly bytes: Buffer;
  /** The decoded bytes. */
  readonly message: CheckMessage;
  /** Whether Envoy would never send these bytes: the product may refuse them as malformed. */
  readonly isOdd: boolean;
  readonly requestChanges: readonly string[];
  readonly now: number;
}

interface Asked extends Question {
  /** Undefined: the product refused the bytes, so the call and the request fail. */
  readonly answer: Buffer | undefined;
  /** The log lines since the previous request, of this one and perhaps of concurrent ones. */
  readonly records: string;
}

// Requests at the same time run concurrently, so that verifications overlap as in a server; different times run one after the other.
async function ask(product: Product, batch: readonly Question[]): Promise<Asked[]> {
  const decided = ({ bytes, now, isOdd }: Question): Promise<Buffer | undefined> =>
    isOdd ? product.decide(bytes, now).catch(() => undefined) : product.decide(bytes, now);
  const isUsual = ({ now, isOdd }: Question): boolean => now === baseTime && !isOdd;
  const usual = batch.filter(isUsual);
  const answers = await Promise.all(usual.map(decided));
  const records = product.takeRecords();
  const asked = usual.map((question, i): Asked => ({ ...question, answer: answers[i], records }));
  for (const question of batch.filter(question => !isUsual(question))) {
    const answer = await decided(question);
    asked.push({ ...question, answer, records: product.takeRecords() });
  }
  return asked;
}

function problemsOf(
  { answer: bytes, records, token, isOdd }: Asked,
  decision: Decision,
  setup: Setup,
  words: Map<string, string>,
): string[] {
  if (bytes === undefined) return [];
  const answer = readAnswerOrNothing(bytes);
  if (answer === undefined) return ['an answer that cannot be read, or with a field that no answer of ours has'];
  // Malformed bytes may be refused before their request id is read.
  const problems = differences(answer, decision, setup.settings).filter(
    each => !isOdd || each !== 'another request_id',
  );
  if (isAllow(answer) && decision.reason !== 'allowed') problems.unshift('ALLOWS what the oracle refuses');
  if (!isSameButForId(answer, words)) problems.push('other words than the answer of this reason before');
  const secrets = token.text
    .split('.')
    .slice(1)
    .filter(segment => new Set(segment.slice(0, 64)).size >= 12);
  // "Overwritten with the other cookies as they were sent": a client may put its token into one of those too.
  if (secrets.some(secret => bytes.includes(secret) && decision.cookie?.includes(secret) !== true))
    problems.push('a part of the token in the answer');
  // Malformed bytes may turn a header into the method, which is logged.
  if (!isOdd && secrets.some(secret => records.includes(secret)))
    problems.push('a part of the token in the record for the log');
  return problems;
}

function readAnswerOrNothing(bytes: Buffer): Answer | undefined {
  try {
    return readAnswer(bytes);
  } catch {
    return undefined;
  }
}

// Most requests reuse an earlier token, as clients do, so that the cache of verified tokens is used.
function pickToken(random: Random, setup: Setup, tokens: GeneratedToken[]): GeneratedToken {
  if (tokens.length > 20 && random.chance(0.87)) {
    const recent = tokens.slice(-200);
    const token = random.pick(recent);
    if (random.chance(0.06)) return alterToken(random, token, random.pick(recent));
    return token.changes.length > 0 && random.chance(0.5) ? random.pick(recent) : token;
  }
  const token = generateToken(random, setup);
  tokens.push(token);
  return token;
}

function pickTime(random: Random, token: GeneratedToken): number {
  return random.weighted([
    [86, baseTime],
    [12, random.pick(token.edges) + random.pick([-1, -0.25, 0, 0.25, 1])],
    [2, baseTime + random.pick([-86_400, 86_400, -3600, 3600])],
  ]);
}

function isSameButForId(answer: Answer, words: Map<string, string>): boolean {
  const reason = reasonIn(answer) ?? '';
  const { denied_response: denied } = answer;
  if (denied === null) return true;
  // The challenge depends on the configuration, and is compared whole with the oracle's.
  const headers = denied.headers.flatMap(({ header }) =>
    header?.key === 'www-authenticate' ? [] : `${header?.key}: ${header?.value}`,
  );
  const text = [...headers, denied.body.replace(/"request_id":"[^"]*"/, '')].join('\n');
  const before = words.get(reason);
  words.set(reason, text);
  return before === undefined || before === text;
}

function increase(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
