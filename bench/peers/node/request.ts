// The checks of a request that need no token: its grammar, its route, the accounts that it names, and where its token is.

export interface HttpAttributes {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface Asked {
  readonly method: string;
  readonly token: string;
  /** Whether the route is for owners and admins alone. */
  readonly isNarrowed: boolean;
  readonly accounts: readonly string[];
}

type Reason = 'request_invalid' | 'route_unknown' | 'token_missing';

const methodGrammar = /^[A-Z]+$/;
const pathGrammar = /^\/(?:[A-Za-z0-9._~:@-]+(?:\/[A-Za-z0-9._~:@-]+)*\/?)?$/;
const dotSegment = /\/\.\.?(?:\/|$)/;
const maxPathBytes = 2048;
const maxTargetBytes = 8192;

export function readRequest({ method, path: target, headers }: HttpAttributes): Asked | Reason {
  const { ':path': shownPath = target, ':method': shownMethod = method, authorization = '' } = headers;
  if (shownPath !== target || shownMethod !== method || !methodGrammar.test(method)) return 'request_invalid';
  if (Buffer.byteLength(target) > maxTargetBytes || target.includes('#')) return 'request_invalid';
  const mark = target.indexOf('?');
  const path = mark === -1 ? target : target.slice(0, mark);
  if (path.length > maxPathBytes || !pathGrammar.test(path) || dotSegment.test(path)) return 'request_invalid';
  if (authorization.includes(',')) return 'request_invalid';
  const named = accountsNamed(headers, mark === -1 ? '' : target.slice(mark + 1));
  if (named === undefined) return 'request_invalid';

  const route = routeOf(path);
  if (typeof route === 'string') return route;
  const token = /^bearer (.+)$/i.exec(authorization)?.[1];
  if (token === undefined) return 'token_missing';
  const { account, isNarrowed } = route;
  return { method, token, isNarrowed, accounts: account === '' ? named : [account, ...named] };
}

/** An upstream that ignores case would serve the route that was not applied, so such a path is refused. */
function routeOf(path: string): { account: string; isNarrowed: boolean } | Reason {
  const [, api = '', subscriptions = '', accounts = '', account = '', billing = ''] = path.split('/');
  if (api !== 'api' || subscriptions !== 'subscriptions') {
    const isAlike = api.toLowerCase() === 'api' && subscriptions.toLowerCase() === 'subscriptions';
    return isAlike ? 'request_invalid' : 'route_unknown';
  }
  if (account === '') return { account, isNarrowed: false };
  if (accounts !== 'accounts') {
    return accounts.toLowerCase() === 'accounts' ? 'request_invalid' : { account: '', isNarrowed: false };
  }
  const isNarrowed = billing === 'billing';
  return isNarrowed || billing.toLowerCase() !== 'billing' ? { account, isNarrowed } : 'request_invalid';
}

const lookAlikeHeaders = ['x_account_id', 'x-account_id', 'x_account-id'];

/** undefined where one of them could be read in two ways. */
function accountsNamed(headers: HttpAttributes['headers'], query: string): string[] | undefined {
  const named: string[] = [];
  const { 'x-account-id': header } = headers;
  if (header !== undefined) {
    if (header.trim() === '' || header.includes(',')) return undefined;
    named.push(header);
  }
  if (lookAlikeHeaders.some(name => name in headers)) return undefined;
  for (const parameter of query === '' ? [] : query.split('&')) {
    const [name = ''] = parameter.split('=', 1);
    const value = parameter.slice(name.length + 1);
    if (name === 'account_id') {
      if (value === '' || /[%+;]/.test(value)) return undefined;
      named.push(value);
    } else if (parameter.split(';').some(looksLikeAccount)) return undefined;
  }
  return named;
}

/** Parsers decode before they split, ignore case, drop what stands around a name, cut at a bracket, or take a dot for an underscore. */
function looksLikeAccount(piece: string): boolean {
  const [name = ''] = piece.split('=', 1);
  const once = decoded(name);
  return [name, once, decoded(once)].some(each => /^[\s+?[\]]*account[_.\s+[]id[\s+]*(?:$|[[\]=\0])/i.test(each));
}

function decoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, run => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'));
}
