// Makes one check as the server does, with keys fetched now and a given time. Serves, logs and writes nothing.
import { isAfter } from '../../authz/checks.ts';
import { compilePermissions } from '../../authz/permission.ts';
import { toAccountGrammar } from '../../authz/places/places.ts';
import type { CheckRecord } from '../../check/check.ts';
import { toClaimRules } from '../../check/engine.ts';
import type { Config } from '../../config/schema.ts';
import { authorizationService, type CheckResponseMessage } from '../../envoy/protocol.ts';
import { createIdentityHeaders } from '../../headers/headers.ts';
import { type JsonPath, memberOf, parsePath, toPointer, valueAt } from '../../json/strict-json.ts';
import type { IssuerRing, KeyRingStatus } from '../../keys/key-ring.ts';
import type { RevocationList } from '../../revocation/revocation-list.ts';
import { quotedPrintable } from '../../text/printable.ts';
import {
  accountPlaceholder,
  type ClaimSource,
  type CompiledSource,
  compileSource,
  readSource,
  readSourceByAccount,
  textOf,
  textsOf,
} from '../../token/claim-source.ts';
import { claimProblems } from '../../token/claims.ts';
import { parseCompactJws } from '../../token/compact.ts';
import { type SentRequest, toCheckRequest } from '../offline/check-request.ts';
import { type FetchSettings, fetchKeys } from '../offline/fetched-keys.ts';
import { fetchRevocations } from '../offline/fetched-revocations.ts';
import { createRecordedCheck } from '../offline/recorded-check.ts';
import { type Answer, type Explanation, explainAnswer } from './explanation.ts';
import type { Known, MissingClaim } from './known.ts';
import { findRefusedCheck } from './refused-checks.ts';

interface LiveCheck extends FetchSettings, SentRequest {
  /** Wall time for the checks of a token, in seconds since the epoch. The keys are the current ones. */
  readonly now: number;
  /** The list of the file that the configuration names. */
  readonly revocations: RevocationList | undefined;
  /** Decides without the list that the configuration names, and says so. */
  readonly leavesOutList: boolean;
}

export interface LiveExplanation {
  readonly explanation: Explanation;
  /** Headers that an allow removes from the request to the upstream. */
  readonly removed: readonly string[];
  readonly keys: readonly KeyRingStatus[];
}

/** Rejects if a jwksFile is missing or invalid, see KeyFileError. */
export async function checkLive(options: LiveCheck): Promise<LiveExplanation> {
  const { config, now, leavesOutList } = options;
  const [{ rings, stop }, revocations] = await Promise.all([
    fetchKeys(options),
    leavesOutList ? { list: undefined, status: undefined } : fetchRevocations(options, options.revocations),
  ]);
  try {
    let asked: IssuerRing | undefined;
    // The engine identifies the issuer of a token by asking its key ring.
    const keyRings = new Map(
      Array.from(rings, ([issuer, ring]) => {
        const find: IssuerRing['find'] = header => {
          asked = ring;
          return ring.find(header);
        };
        return [issuer, { ...ring, find }];
      }),
    );
    const check = createRecordedCheck({ config, keyRings, revocations: revocations.list });
    const { response, record, fault } = await check(toCheckRequest(options, config.token), now);
    const message = Check.responseDeserialize(response);
    const keys = asked?.status();
    const { method, route, principal, reason, detail, found } = record;
    const { answer, removed } = readAnswer(message, record, config);
    const token = options.authorization?.replace(/^bearer /i, '') ?? '';
    const isSigned = reason === 'allowed' || isPastSignature(findRefusedCheck(reason, detail ?? '').check);
    const explanation = explainAnswer(answer, detail, {
      found,
      method,
      route,
      principal,
      config,
      request: options.request,
      now,
      keys,
      list: revocations.status,
      leavesOutList,
      tokenLength: token.length,
      ...(isSigned ? signedFacts(token, config, keys?.issuer, principal?.acc, now) : none),
      // What failed once would fail again.
      header: fault === undefined ? headerOf(token) : undefined,
      fault,
    });
    return { explanation, removed, keys: Array.from(rings.values(), ring => ring.status()) };
  } finally {
    await stop();
  }
}

const { Check } = authorizationService;

const passedOn = 200;

function readAnswer(
  { denied_response: denied, ok_response: allowed }: CheckResponseMessage,
  { decision, reason }: CheckRecord,
  { identityHeaders, forwardClaims }: Config,
): { readonly answer: Answer; readonly removed: readonly string[] } {
  const sent = denied ?? allowed;
  if (!sent || (decision === 'allow') !== (sent === allowed)) throw new Error('an answer that is not the decision');
  const all = new Map(sent.headers.map(({ header }) => [header.key, header.value]));
  const names = createIdentityHeaders(identityHeaders, forwardClaims).forwarded;
  const forwarded = Object.fromEntries(names.map(name => [name, all.delete(name)]));
  const headers = Object.fromEntries(all);
  const status = denied ? denied.status.code : passedOn;
  return {
    answer: { decision, reason, status, headers, ...(allowed && names.length > 0 && { forwarded }) },
    removed: allowed?.headers_to_remove ?? [],
  };
}

function isPastSignature(check: ReturnType<typeof findRefusedCheck>['check']): boolean {
  return check !== 'service' && isAfter(check, 'signature');
}

type SignedFacts = Pick<Known, 'times' | 'roles' | 'scopes' | 'texts' | 'missingClaims' | 'wrongClaims'>;

const none = { times: undefined, roles: undefined, scopes: undefined, texts: {}, missingClaims: [], wrongClaims: [] };

function headerOf(token: string): Known['header'] {
  const jws = parseCompactJws(token);
  if (jws.kind === 'refusal') return undefined;
  const { alg, typ, kid, payload } = jws;
  const described = Object.entries({ alg, typ, kid, iss: memberOf(payload, 'iss') }).map(([name, value]) => {
    const text = typeof value === 'string' ? quotedPrintable(value, 256) : 'no text';
    return [name, value === undefined ? `there is no ${name}` : `${name} is ${text}`];
  });
  return Object.fromEntries(described);
}

// What separates the parts of a path in other products, [] and [*] for each member of a list, and what some write in other ways: org_id, orgId.
const plain = (name: string): string =>
  name
    .trim()
    .replace(/^(?:\$\.?|#?\/)/, '')
    .replace(/[\]"'_-]/g, '')
    .replace(/[[/:]/g, '.')
    .replace(/\.\*?(?=\.|$)/g, '')
    .toLowerCase();
const singular = (name: string): string => plain(name).replace(/\Bs(?=\.|$)/g, '');

function pathsIn(value: unknown, path: JsonPath = []): readonly JsonPath[] {
  const keys = typeof value === 'object' && value !== null ? Object.keys(value) : [];
  return keys.flatMap(key => [[...path, key], ...pathsIn(valueAt(value, [key]), [...path, key])]);
}

/** Where the token has what a name or a path may mean that leads to nothing in it: as others write it, or further inside. */
function pathTo(payload: unknown, name: string): JsonPath | undefined {
  const paths = pathsIn(payload).toSorted((one, other) => one.length - other.length);
  const withoutIndices = (path: JsonPath): JsonPath => path.filter(key => !/^\d+$/.test(key));
  const found = [plain, singular].map(read => {
    const meant = `.${read((parsePath(name) ?? [name]).join('/'))}`;
    const isMeant = (path: JsonPath): boolean => `.${path.map(read).join('.')}`.endsWith(meant);
    return paths.find(path => isMeant(path) || isMeant(withoutIndices(path)));
  });
  return found.find(path => path !== undefined);
}

// Only of a token with a valid signature.
function signedFacts(
  token: string,
  config: Config,
  issuer: string | undefined,
  account: string | undefined,
  now: number,
): SignedFacts {
  const { issuers, scopes } = config;
  const jws = parseCompactJws(token);
  const settings = issuers.find(each => each.issuer === issuer);
  if (jws.kind === 'refusal' || settings === undefined) return none;
  const { claims } = settings;
  const timeIn = (name: string): number | undefined => {
    const value = memberOf(jws.payload, name);
    return typeof value === 'number' ? value : undefined;
  };
  const missing = (name: string): readonly MissingClaim[] => {
    const dependsOnAccount = name.includes(accountPlaceholder);
    const own = name.replaceAll(accountPlaceholder, account ?? '');
    if ((dependsOnAccount && account === undefined) || valueAt(jws.payload, parsePath(own) ?? []) !== undefined)
      return [];
    const path = pathTo(jws.payload, own)?.map(key => (dependsOnAccount && key === account ? accountPlaceholder : key));
    return dependsOnAccount && path === undefined ? [] : [{ name, pointer: path && toPointer(path) }];
  };
  const tables = { roles: compilePermissions(config.roles), scopes: scopes && compilePermissions(scopes) };
  const rules = toClaimRules(settings, tables, toAccountGrammar(config.account));
  const own = { ...rules, issuer: String(memberOf(jws.payload, 'iss')) };
  const readIn = (source: CompiledSource): string | readonly string[] | undefined => {
    const dependsOnAccount = source.parts.length > 1 || source.havingAccount;
    if (dependsOnAccount && account === undefined) return undefined;
    const value = dependsOnAccount
      ? readSourceByAccount(jws.payload, source)(account ?? '')
      : readSource(jws.payload, source);
    return typeof value === 'object' && 'problem' in value ? undefined : value;
  };
  const textIn = (source: ClaimSource = '') => readIn(compileSource(textOf(source), false));
  return {
    times: { exp: timeIn('exp'), nbf: timeIn('nbf'), iat: timeIn('iat') },
    roles: readIn(own.role),
    scopes: scopes && [readIn(own.scope) ?? []].flat(),
    texts: { acc: textIn(claims.acc), role: textIn(claims.role), scope: textIn(claims.scope) },
    missingClaims: [claims.aud, claims.uid, claims.app, claims.acc, claims.role, scopes && claims.scope]
      .flatMap(source => (source === undefined ? [] : textsOf(source)))
      .flatMap(missing),
    wrongClaims: claimProblems(jws.payload, own, config.token, now).map(
      ({ detail, found }) => `${detail}${found === undefined ? '' : `: ${found}`}`,
    ),
  };
}
