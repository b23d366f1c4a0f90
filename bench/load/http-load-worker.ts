// The process behind http-load-process.ts: makes the requests of the lanes that it is told, and tells the answers in batches.
import { randomBytes } from 'node:crypto';
import { createLoad, type Lane, type Load, type LoadAnswer } from './http-load.ts';
import type { Answer, LaneDescription, LoadOrder, LoadProcessOptions, LoadReport } from './http-load-process.ts';

const batchMs = 100;

let load: Load | undefined;
let batch: Answer[] = [];
/** Answers of which nothing is told. */
let rehearsals = 0;
let flushing: NodeJS.Timeout | undefined;

process.on('disconnect', () => process.exit(1));
process.on('message', (order: LoadOrder) => {
  switch (order.kind) {
    case 'start':
      start(order.options);
      return;
    case 'rates':
      load?.setRates(order.rates);
      flush();
      return;
    case 'stop':
      void stop();
      return;
  }
});

function start({ origin, connections, lanes, keepsAnswers }: LoadProcessOptions): void {
  const rehearsed = new Set(lanes.filter(isRehearsal).map(({ name }) => name));
  load = createLoad({
    ...{ origin, connections },
    lanes: lanes.map(toLane),
    onAnswer(answer) {
      const made = toAnswer(answer);
      if (rehearsed.has(answer.lane)) rehearsals++;
      else batch.push(made);
    },
  });
  if (keepsAnswers !== true) flushing = setInterval(flush, batchMs);
  tell({ kind: 'started' });
}

async function stop(): Promise<void> {
  const sent = (await load?.stop()) ?? 0;
  clearInterval(flushing);
  flush();
  tell({ kind: 'stopped', sent: sent - rehearsals }, () => process.exit(0));
}

function flush(): void {
  if (batch.length === 0) return;
  tell({ kind: 'answers', answers: batch });
  batch = [];
}

function tell(report: LoadReport, done: () => void = () => undefined): void {
  process.send?.(report, undefined, undefined, done);
}

function isRehearsal(description: LaneDescription): boolean {
  return description.kind === 'strangers' && description.isRehearsal === true;
}

function toLane(description: LaneDescription): Lane {
  const { name } = description;
  switch (description.kind) {
    case 'tokens': {
      const { requests, once } = description;
      return {
        name,
        request(number) {
          const request = requests[once ? number : number % requests.length];
          if (request === undefined) throw new Error(`lane ${name} has no more than ${requests.length} tokens`);
          return toRequest(request.path, `${name}.${number}`, request.token);
        },
      };
    }
    case 'strangers': {
      const { path, payload } = description;
      return { name, request: number => toRequest(path, `${name}.${number}`, strangersToken(payload)) };
    }
  }
}

function toRequest(path: string, name: string, token: string): ReturnType<Lane['request']> {
  return { path: `${path}?n=${name}`, headers: { authorization: `Bearer ${token}` } };
}

/** As an ES256 token looks; the payload is a segment as it stands. */
function strangersToken(payload: string): string {
  const random = randomBytes(80);
  const header = `{"alg":"ES256","typ":"JWT","kid":"${random.toString('hex', 64)}"}`;
  return `${Buffer.from(header).toString('base64url')}.${payload}.${random.toString('base64url', 0, 64)}`;
}

function toAnswer({ body, ...answer }: LoadAnswer): Answer {
  return { ...answer, reason: answer.status === 200 ? undefined : reasonOf(body, answer.status) };
}

function reasonOf(body: string, status: number): string | undefined {
  if (!body.startsWith('{')) return undefined;
  const problem: unknown = JSON.parse(body);
  if (typeof problem !== 'object' || problem === null || !('reason' in problem) || !('status' in problem))
    return undefined;
  return problem.status === status ? String(problem.reason) : undefined;
}
