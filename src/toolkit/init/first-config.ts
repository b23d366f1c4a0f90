// Writes a first configuration from a token, the keys of its issuer and the operations of an API. What a person must choose stands under
// `# choose:` with a valid stand-in. Of the token it shows names of members, iss, aud, alg, typ, roles and the names of accounts in objects.
import { issuerPlaceholder } from '../../authz/issuer-template.ts';
import { issuerGrammar } from '../../authz/principal.ts';
import { defaultAccountParameter } from '../../authz/route-template.ts';
import { defaultAlgorithms } from '../../config/issuer-schema.ts';
import { configSchema } from '../../config/schema.ts';
import { memberOf } from '../../json/strict-json.ts';
import { printable, quotedPrintable, replaceUnprintable, toYamlEscape } from '../../text/printable.ts';
import { keyUrlProblem } from '../../text/url.ts';
import { type ClaimSource, textOf } from '../../token/claim-source.ts';
import type { CompactJws } from '../../token/compact.ts';
import { normalizeTokenType } from '../../token/verifier.ts';
import type { Operation } from '../openapi/operations.ts';
import type { ClaimField } from './claim-shapes.ts';
import { type ChosenClaims, chooseClaims } from './claims.ts';
import { type FirstRoutes, toFirstRoutes } from './first-routes.ts';
import type { FoundKeys } from './issuer-keys.ts';

export interface FirstConfig {
  readonly text: string;
  /** What was taken from where, a line each. */
  readonly taken: readonly string[];
  /** What a person must choose, a line each. */
  readonly choices: readonly string[];
}

interface Input {
  readonly jws: CompactJws;
  readonly tokenBytes: number;
  /** Undefined: nobody was asked. */
  readonly keys: FoundKeys | undefined;
  readonly operations: readonly Operation[] | undefined;
  /** Wall time in seconds since the epoch. */
  readonly now: number;
}

const day = 86_400;
const defaultMaxBytes = 8192;
const maxBytes = 65_536;
const standIn = 'https://auth.example.com';

export function writeFirstConfig({ jws, tokenBytes, keys, operations, now }: Input): FirstConfig {
  const { payload } = jws;
  const taken: string[] = [];
  const choices: string[] = [];
  const choose = (what: string, indent = ''): string => {
    choices.push(what);
    return `${indent}# choose: ${what}\n`;
  };
  const claims = chooseClaims(payload);
  const iss = memberOf(payload, 'iss');
  const issuer =
    typeof iss === 'string' && issuerGrammar.test(iss) && !iss.includes(issuerPlaceholder) ? iss : undefined;

  const issuerLines =
    issuer === undefined
      ? `${choose('issuer: the token has no iss that can be compared', '  ')}  - issuer: ${standIn}\n`
      : `${manyIssuersNote(issuer, claims)}  - issuer: ${word(issuer)}\n`;
  const text = [
    `# A first configuration, made by account-authz init. Then: account-authz check-config, and explain with the same token.\n`,
    `issuers:\n`,
    issuerLines,
    keySourceLines(),
    audienceLines(),
    algorithmLines(),
    typeLines(),
    ...(Object.values(claims).some(({ hasIntegers }) => hasIntegers)
      ? [`    allowIntegerClaims: true   # a claim of the token is a number\n`]
      : []),
    `    claims:\n`,
    ...(['uid', 'app', 'acc', 'role', 'scope'] as const).map(claimLines),
    tokenLines(),
    policyLines(),
  ].join('');
  return { text, taken, choices };

  function keySourceLines(): string {
    const source = keys?.source;
    if (source !== undefined && source.kind !== 'problem') {
      taken.push(`${source.kind}: ${source.url}${source.remark === undefined ? '' : ` (${source.remark})`}`);
      const remark = source.remark === undefined ? '' : `   # ${printable(source.remark, 1024)}`;
      const choice =
        keys?.verified.kind === 'problem'
          ? choose('the keys of the issuer: the signature of the token is not verified with them', '    ')
          : '';
      return `${choice}    ${source.kind}: ${word(source.url)}${remark}\n`;
    }
    const base =
      issuer !== undefined && keyUrlProblem(issuer) === undefined && !issuer.includes('?')
        ? issuer.replace(/\/$/, '')
        : standIn;
    const why = source === undefined ? 'nobody was asked' : 'no metadata was found';
    return `${choose(`jwksUrl: the URL of the key set (${why})`, '    ')}    jwksUrl: ${word(`${base}/.well-known/jwks.json`)}\n`;
  }

  function audienceLines(): string {
    const aud = memberOf(payload, 'aud');
    const all = (Array.isArray(aud) ? aud : [aud]).filter(each => typeof each === 'string');
    const audiences = [...new Set(all)].filter(each => /^[^\p{Cc}]{1,1024}$/u.test(each) && each.trim() === each);
    if (audiences.length === 0 || (Array.isArray(aud) && all.length < aud.length)) {
      const other = ['client_id', 'cid', 'azp'].find(name => typeof memberOf(payload, name) === 'string');
      const remedy =
        other === undefined
          ? 'ask the provider for one that names your API'
          : `ask the provider for one, or write claims.aud: ${other} and here its values`;
      return `${choose(`audiences: the token has no aud; ${remedy}`, '    ')}    audiences:\n      - https://api.example.com\n`;
    }
    taken.push(`audiences from aud: ${audiences.map(each => quotedPrintable(each, 256)).join(', ')}`);
    return `    audiences:   # of the token: keep those that name your API\n${audiences.map(each => `      - ${word(each)}\n`).join('')}`;
  }

  function algorithmLines(): string {
    const { alg } = jws;
    if (defaultAlgorithms.some(each => each === alg)) return '';
    if (isAccepted({ algorithms: [alg] })) {
      taken.push(`algorithms from alg: ${alg}`);
      return `    algorithms: [${alg}]   # of the token; the default is ${defaultAlgorithms.join(', ')}\n`;
    }
    const why = alg.startsWith('HS') ? 'a shared secret, by which the API could make tokens' : 'never accepted';
    return choose(
      `algorithms: alg is ${quotedPrintable(alg, 32)}, ${why}: ask the provider to sign with RS256, ES256 or EdDSA`,
      '    ',
    );
  }

  function typeLines(): string {
    const { typ } = jws;
    if (typ !== undefined && ['application/jwt', 'application/at+jwt'].includes(normalizeTokenType(typ))) return '';
    if (typ !== undefined && (typ === '' || !isAccepted({ tokenTypes: [typ] })))
      return choose(`tokenTypes: typ is ${quotedPrintable(typ, 64)}, which can never be listed`, '    ');
    taken.push(`tokenTypes from typ: ${typ ?? 'the token has none'}`);
    return `    tokenTypes: [${typ === undefined ? "''" : word(typ)}]   # ${typ === undefined ? 'the token has no typ' : 'of the token'}; the default is JWT, at+jwt\n`;
  }

  function claimLines(field: ClaimField): string {
    const { source, others, isAmbiguous } = claims[field];
    const name = `      ${field}: `;
    const shown = others.map(toYaml).join(', ');
    if (source === undefined) {
      if (field === 'scope') return '';
      return `${choose(`${field}: no claim of the token is known to have it`, '      ')}${name}${field}\n`;
    }
    taken.push(`${field} from ${toYaml(source)}${others.length === 0 ? '' : `, also possible: ${shown}`}`);
    const head = isAmbiguous
      ? choose(`${field}: it may be ${[source, ...others].map(toYaml).join(' or ')}`, '      ')
      : '';
    return `${head}${name}${toYaml(source)}${others.length === 0 ? '' : `   # or ${shown}`}\n`;
  }

  function tokenLines(): string {
    const { exp, iat } = payload;
    const lines: string[] = [];
    if (tokenBytes > maxBytes)
      lines.push(choose(`token: it has ${tokenBytes} bytes, and more than ${maxBytes} are never accepted`, '  '));
    else if (tokenBytes > defaultMaxBytes)
      lines.push(
        `  maxBytes: ${Math.min(maxBytes, tokenBytes + 1024 - (tokenBytes % 1024))}   # the token is that long; the default is ${defaultMaxBytes}\n`,
      );
    if (typeof exp !== 'number')
      lines.push(
        choose(
          'exp: the token has no time at which it expires, so it is never accepted: ask the provider for one',
          '  ',
        ),
      );
    else {
      const life = typeof iat === 'number' ? Math.ceil(exp - iat) : Math.ceil((exp - now) / day) * day;
      const note =
        typeof iat === 'number' ? 'the token lives that long' : 'the token has no iat, so the rest of its life counts';
      if (life > day) lines.push(`  maxLifetimeSeconds: ${life}   # ${note}; the default is ${day}\n`);
    }
    if (memberOf(payload, 'cnf') !== undefined)
      lines.push(
        choose(
          'cnf: the token is bound to a key of its client, and is refused without it (docs/client-certificates.md)',
          '  ',
        ),
      );
    const settings = lines.some(line => !line.startsWith('  #'));
    // It is removed otherwise.
    const readsToken = operations?.some(({ access }) => access === 'protected' || access === 'optional') ?? false;
    const forward = `${settings ? '  #' : '# token: {'} forward: true${settings ? '' : ' }'}   # for an API that reads the token itself\n`;
    return `${settings ? 'token:\n' : ''}${lines.join('')}${readsToken ? forward : ''}`;
  }

  function policyLines(): string {
    const first = operations && toFirstRoutes(operations);
    return `${routeLines(first)}${accountLines(first)}${roleLines()}`;
  }

  function routeLines(first: FirstRoutes | undefined): string {
    if (first === undefined || first.routes.length === 0) {
      const why =
        first === undefined
          ? 'the paths of your API (--openapi FILE reads them from its document)'
          : 'the document has no operation to protect';
      const path = first?.public.some(each => each.path.startsWith('/api')) ? '/protected/*' : '/api/*';
      return `routes:\n${choose(`routes: ${why}`, '  ')}  - path: ${path}\n${publicLines(first)}`;
    }
    const routes = first.routes.map(({ path, hasAccount, hasOthers }) => {
      const note = hasAccount ? '' : '   # compares no account, unless the request names one elsewhere';
      return `  - path: ${word(path)}${note}\n${hasOthers && !hasAccount ? '    accountInPath: false\n' : ''}`;
    });
    taken.push(`routes: ${first.routes.length}, public: ${first.public.length}, from ${operations?.length} operations`);
    const say = (operations: readonly Operation[], what: string): void => {
      for (const { method, path } of operations) taken.push(`${printable(`${method} ${path}`, 256)} ${what}`);
    };
    say(first.keptChecked, 'is public in the document and stays checked: a protected route has its path too');
    say(first.leftOut, 'is left out: its path or its method is never permitted');
    const [several = ''] = first.accountNames;
    const choice =
      several === ''
        ? ''
        : choose(
            `routes: the account may be ${first.accountNames.map(name => printable(name)).join(' or ')}; here it is ${printable(several)}`,
            '  ',
          );
    return `routes:\n${choice}${routes.join('')}${publicLines(first)}`;
  }

  function publicLines(first: FirstRoutes | undefined): string {
    if (first === undefined || first.public.length === 0) return '';
    const lines = first.public.map(({ path, methods }) => {
      const isDefault = methods.join() === 'GET,HEAD';
      return `  - path: ${word(path)}\n${isDefault ? '' : `    methods: [${methods.join(', ')}]\n`}`;
    });
    return `public:   # the document asks for no credentials: Envoy serves these without a check\n${lines.join('')}`;
  }

  function accountLines(first: FirstRoutes | undefined): string {
    const { parameter = defaultAccountParameter, headers = [], query = [] } = first?.account ?? {};
    const { names, isSeveral } = claims.acc;
    const hasDots = names.length > 0 && names.every(name => name.includes('.'));
    const lines = [
      ...(parameter === defaultAccountParameter ? [] : [`  parameter: ${word(parameter)}\n`]),
      ...(headers.length === 0 ? [] : [`  headers: [${headers.map(word).join(', ')}]\n`]),
      ...(query.length === 0 ? [] : [`  query: [${query.map(word).join(', ')}]\n`]),
      ...(hasDots ? ['  dots: true   # the account of the token has a dot\n'] : []),
    ];
    const isNamed =
      first !== undefined && first.routes.length > 0 && first.routes.every(({ hasAccount }) => hasAccount);
    const choice =
      isSeveral && new Set(names).size > 1 && !isNamed
        ? choose(
            'account: the token has several accounts, so each request must name one: in a path, account.headers, account.query or account.hosts',
          )
        : '';
    return `${choice}${lines.length === 0 ? '' : `account:\n${lines.join('')}`}`;
  }

  function roleLines(): string {
    const secrets = new Set(
      ['email', 'name', 'preferred_username', 'username', 'jti', 'sid', 'sub'].map(name => memberOf(payload, name)),
    );
    for (const field of ['uid', 'acc'] as const)
      if (!claims[field].isSeveral) for (const name of claims[field].names) secrets.add(name);
    const names = claims.role.names.filter(name => !secrets.has(name));
    const shown = names.slice(0, maxRoles);
    if (shown.length === 0)
      return `roles:\n${choose('roles: what tokens call the roles, and what each may do', '  ')}  member: [GET, HEAD]\n`;
    const left = names.length - shown.length;
    const more = left === 0 ? '' : `; ${left} more are left out`;
    taken.push(
      `roles from ${toYaml(claims.role.source ?? '')}: ${shown.map(name => printable(name)).join(', ')}${more}`,
    );
    const lines = shown.map((name, i) => {
      const methods = [...new Set(['GET', 'HEAD', ...writingMethods(name)])]
        .map(each => (each.includes(' ') ? `'${each}'` : each))
        .join(', ');
      return isPlainRole(name)
        ? `  ${word(name)}: [${methods}]\n`
        : `  role${i + 1}: { methods: [${methods}], names: [${word(name)}] }\n`;
    });
    return `roles:   # those of the token, for reading alone where the document says no more${more}\n${lines.join('')}`;
  }

  /** The grants beyond reading that the document names for a role or scope. */
  function writingMethods(name: string): readonly string[] {
    const paths = operations?.filter(each => each.names.includes(name) && !['GET', 'HEAD'].includes(each.method)) ?? [];
    return paths.flatMap(({ method, segments }) => {
      if (!/^[A-Z]{1,32}$/.test(method) || segments.some(each => each.kind === 'mixed')) return [];
      const path = segments.map(each => (each.kind === 'parameter' ? ':any' : each.text));
      return path.every(each => each === ':any' || /^[A-Za-z0-9._~@-]+$/.test(each))
        ? [`${method} /${path.join('/')}`]
        : [];
    });
  }
}

const maxRoles = 50;

/** Whether a configuration may have these settings of an issuer. */
function isAccepted(settings: object): boolean {
  const issuer = { issuer: standIn, audiences: ['any'], jwksUrl: standIn, ...settings };
  return configSchema.safeParse({ issuers: [issuer], routes: [{ path: '/any' }], roles: { any: ['GET'] } }).success;
}

/** The account of a realm or tenant that has an issuer of its own may stand in it. */
function manyIssuersNote(issuer: string, { acc }: ChosenClaims): string {
  const [realm] = /(?<=\/realms\/)[^/]+$/.exec(issuer) ?? [];
  const names = new Set([realm, ...(acc.isSeveral ? [] : acc.names)]);
  const parts = issuer.split('/').map((part, i) => {
    const [label = '', ...others] = part.split('.');
    if (names.has(part)) return '{acc}';
    return i === 2 && names.has(label) ? ['{acc}', ...others].join('.') : part;
  });
  const template = parts.join('/');
  if (template === issuer) return '';
  return `  # An issuer for each account? Then issuer: ${printable(template, 1024)}, without claims.acc (docs/accounts.md)\n`;
}

function isPlainRole(name: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_.:!$@/-]{0,127}$/.test(name);
}

function toYaml(source: ClaimSource): string {
  if (typeof source === 'string') return word(source);
  const more = 'having' in source ? ", having: '{acc}'" : 'by' in source ? ", by: ','" : '';
  return `{ ${'keysOf' in source ? 'keysOf' : 'wordsOf'}: ${word(textOf(source))}${more} }`;
}

/** A text in YAML, in whatever place: plain where no reader takes it for something else, in quotes otherwise. */
function word(text: string): string {
  if (
    /^[A-Za-z/][A-Za-z0-9_./@+*-]*(?::[A-Za-z0-9_./@+*-]+)*$/.test(text) &&
    !/^(?:true|false|null|yes|no|on|off|y|n)$/i.test(text)
  )
    return text;
  if (/^[ -~]*$/.test(text)) return `'${text.replaceAll("'", "''")}'`;
  return replaceUnprintable(JSON.stringify(text), toYamlEscape);
}
