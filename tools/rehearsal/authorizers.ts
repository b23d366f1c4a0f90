// `npm run restarts`: restarts authorizers behind one Envoy, by SIGTERM and SIGKILL in turn, under load on this machine. Exits with 0
// only if no request failed or, with a single authorizer, if each failed request was answered 503.
import { parseArgs } from 'node:util';
import type { Document } from 'yaml';
import { type EndSignal, rehearseRestarts } from './restarts.ts';
import { isAsPromised, restartsReport } from './restarts-report.ts';
import { addSeveralAuthorizers, type Part } from './several-authorizers.ts';

const { values: options } = parseArgs({
  options: {
    authorizers: { type: 'string', default: '2' },
    terms: { type: 'string', default: '5' },
    kills: { type: 'string', default: '10' },
    /** The number of requests in flight, and the pause of each client between two. */
    clients: { type: 'string', default: '12' },
    pause: { type: 'string', default: '40' },
    envoy: { type: 'string' },
    /** Makes Envoy forward an answer frame by frame, to measure the effect of the overlay's buffer filter. */
    'without-filter': { type: 'boolean', default: false },
  },
});
const numberOf = (text: string): number => {
  if (!/^\d{1,4}$/.test(text)) throw new Error(`${text} is no number of up to four digits`);
  return Number(text);
};

const startedAt = performance.now();
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const times = (signal: EndSignal, count: number): EndSignal[] => Array.from({ length: count }, () => signal);
const authorizers = numberOf(options.authorizers);
const clients = numberOf(options.clients);
const parts: readonly Part[] = options['without-filter'] ? ['health'] : ['health', 'filter'];
const result = await rehearseRestarts({
  authorizers,
  signals: [...times('SIGTERM', numberOf(options.terms)), ...times('SIGKILL', numberOf(options.kills))],
  graceSeconds: 4,
  steadyMs: 3000,
  clients: {
    'HTTP/1.1': Math.ceil(clients / 2),
    'HTTP/2': Math.ceil(clients / 3),
    'one request a connection': Math.ceil(clients / 6),
  },
  pauseMs: numberOf(options.pause),
  ...(options.envoy === undefined ? {} : { envoyVersion: options.envoy }),
  ...(authorizers > 1 ? { edit: (bootstrap: Document) => addSeveralAuthorizers(bootstrap, parts) } : {}),
  onEvent: text => say(`${((performance.now() - startedAt) / 1000).toFixed(1).padStart(6)} s  ${text}`),
});
say('');
say(restartsReport(result, process.stdout.isTTY === true));
process.exitCode = isAsPromised(result, authorizers) ? 0 : 1;
