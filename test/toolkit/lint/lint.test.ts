// The lint as a whole: its messages, and its robustness against any input.
import { expect } from 'chai';
import fc from 'fast-check';
import { RE2JS } from 're2js';
import messages from '../../../src/toolkit/lint/envoy-messages.json' with { type: 'json' };
import { knownMessages } from '../../../src/toolkit/lint/known-messages.ts';
import { lintEnvoy, lintRules } from '../../../src/toolkit/lint/lint.ts';
import { createNameSet, matchedBy, parseNameRegex } from '../../../src/toolkit/lint/name-regex.ts';
import { runs } from '../../support/foreign-bytes.ts';
import { lintAfter, type Part, problemsAfter, type Shipped, shipped, typed } from './shipped.ts';

describe('lint problem', () => {
  it('states the mistake, its effect and the remedy, and ends with its rule', () => {
    const [problem] = problemsAfter(p => Object.assign(p.check, { failure_mode_allow: true }));
    expect(problem?.message).to.equal(
      'is true: if true, Envoy forwards requests that it could not check; write `failure_mode_allow: false` [failure-mode-allow]',
    );
  });

  it('names a path that bypasses the check', () => {
    const [problem] = problemsAfter(p => {
      p.routes.unshift({
        match: { prefix: '/api/subscriptions/export' },
        route: { cluster: 'upstream' },
        typed_per_filter_config: { 'envoy.filters.http.ext_authz': { ...perRoute, disabled: true } },
      });
    });
    expect(problem?.message).to.match(
      /^turns the check off where "\/api\/subscriptions\/export" goes to cluster "upstream": /,
    );
  });

  it('says what is so in files of other control planes', () => {
    const says = (edit: (p: Shipped) => unknown) => problemsAfter(edit).map(({ message }) => message.split(': ')[0]);
    const open = (match: object) => ({
      match,
      route: { cluster: 'upstream' },
      typed_per_filter_config: { 'envoy.filters.http.ext_authz': { ...perRoute, disabled: true } },
    });
    const health = 'turns the check off where "/health" goes to cluster "upstream"';
    expect(says(p => p.routes.unshift(open({ prefix: '/health' })))).to.deep.equal([health]);
    const isPublic = { public: [{ path: '/health', methods: ['GET'] }] };
    for (const [matcher, methods] of [
      [{ string_match: { prefix: 'P' } }, 'every method'],
      [{ exact_match: 'POST' }, 'POST'],
      [{ string_match: { exact: 'GET', ignore_case: true } }, 'GET, get'],
      [{ safe_regex_match: { regex: 'GET|PUT' } }, 'GET, PUT'],
    ] as const) {
      const route = open({ path: '/health', headers: [{ name: ':method', ...matcher }] });
      const found = says(p => [Object.assign(p.config, isPublic), p.routes.unshift(route)]);
      expect(found).to.include(`${health}, for ${methods} where \`public\` names GET`);
    }
    expect(says(p => Object.assign(p.host, { routes: [{ match: { prefix: '/' }, redirect: {} }] }))).to.deep.equal([
      'have the check, and no route to a service',
    ]);
    const type = 'type.googleapis.com/envoy.extensions.filters.network.ext_authz.v3.ExtAuthz';
    const network = { name: 'x', typed_config: { '@type': type, failure_mode_allow: true } };
    expect(says(p => Object.assign(p.listener, { filter_chains: [{ filters: [network] }] }))).to.deep.equal([
      'have no filter that asks account-authz, but a network ext_authz, which asks once for each connection, without a path or a token, and lets pass what it cannot ask about',
    ]);
    const alone = (p: Shipped) => ({ typed_config: { ...p.manager, http_filters: p.filters.slice(-1) } });
    const proxy = 'type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy';
    const tcp = { typed_config: { '@type': proxy, cluster: 'upstream' } };
    const chains = (p: Shipped, ...all: Part[][]) =>
      p.listener.filter_chains.push(...all.map(filters => ({ filters })));
    const found = says(p => chains(p, [network, alone(p)], [alone(p)], [tcp], [network, tcp]));
    const beside =
      /^([^,]*)(, but a network ext_authz, which asks .*, and lets pass what it cannot ask about)?(?:, and "\/.*")?$/;
    const [bytes, none] = ['forwards bytes to the protected service', 'have no check'];
    expect(found.map((text = '') => beside.exec(text)?.[1])).to.deep.equal([none, none, bytes, bytes]);
    expect(found.map((text = '') => beside.exec(text)?.[2] !== undefined)).to.deep.equal([true, false, false, true]);
    const itself = { prefix_rewrite: '/api/subscriptions' };
    expect(lintAfter(p => Object.assign(p.routes[0].route, itself)).notJudged).to.deep.equal([]);
    const rewritten = (match: object, rewrite: object) =>
      says(p => Object.assign(p.routes[0], { match, route: { ...p.routes[0].route, ...rewrite } })).join();
    const path = '/api/subscriptions';
    expect(rewritten({ path }, { path_rewrite: path })).to.not.include('rewrites the checked path');
    expect(rewritten({ path, case_sensitive: false }, { path_rewrite: path })).to.include('rewrites the checked path');
    const named = 'has no typed_config, without which Envoy 1.40 does not start';
    expect(says(p => delete p.filters.at(-1).typed_config)).to.deep.equal([named]);
    const unjudged = (edit: (p: Shipped) => unknown) => lintAfter(edit).notJudged.map(({ message }) => message);
    expect(unjudged(p => p.filters.unshift({ name: 'envoy.filters.http.lua' }))).to.deep.equal([named]);
    const body = { filename: '/page.html' };
    const page = (reply: object) => unjudged(p => Object.assign(p.manager, { local_reply_config: reply }));
    expect(page({ mappers: [{ filter: { header_filter: {} }, body }] })).to.deep.equal([]);
    expect(page({ body_format: { text_format_source: body } })).to.deep.equal([
      'is not judged: a format outside this file can print headers of the request, the token too',
    ]);
    const discovered = { name: 'x', config_discovery: { config_source: { ads: {} }, type_urls: [type] } };
    expect(says(p => p.filters.splice(-1, 0, discovered))).to.include(
      'comes from a control plane (`config_discovery`) and can change the request after the check',
    );
  });

  it('is none of the mcp filter, which is named where it refuses the metadata document', () => {
    const named = (off: object): number => {
      const { notJudged } = lintAfter(p => {
        Object.assign(p.config, { protectedResource: { resource: 'https://api.example.com/subscriptions' } });
        const path = '/.well-known/oauth-protected-resource/subscriptions';
        p.routes.unshift({ match: { path }, direct_response: { status: 200 }, ...off });
        const type = 'type.googleapis.com/envoy.extensions.filters.http.mcp.v3.Mcp';
        const typed_config = { '@type': type, traffic_mode: 'REJECT_NO_MCP' };
        p.filters.splice(3, 0, { name: 'mcp', typed_config });
      });
      return notJudged.filter(({ message }) => message.includes('answers 400 to clients')).length;
    };
    const disabled = { '@type': 'type.googleapis.com/envoy.config.route.v3.FilterConfig', disabled: true };
    expect([named({}), named({ typed_per_filter_config: { mcp: disabled } })]).to.deep.equal([1, 0]);
  });

  it('is reported once, however many routes share it', () => {
    const problems = problemsAfter(p => {
      p.host.request_headers_to_remove = ['x-auth-uid'];
    });
    expect(problems).to.have.length(1);
  });

  it('contains no control character of the file, and is truncated', () => {
    const problems = problemsAfter(p => {
      p.routes[0].route = { cluster: '\u001b]0;x\u0007\n\u202e'.repeat(100) };
      p.routes[0].typed_per_filter_config = { 'envoy.filters.http.ext_authz': { ...perRoute, disabled: true } };
    });
    expect(problems).to.have.length(1);
    expect(problems[0]?.message).not.to.match(/[\p{C}\p{Zl}\p{Zp}]/u);
    expect(problems[0]?.message).to.have.length.below(600);
  });
});

const perRoute = { '@type': 'type.googleapis.com/envoy.extensions.filters.http.ext_authz.v3.ExtAuthzPerRoute' };

/** The paths of all parts of a value, except the value itself. */
function partsOf(value: unknown, path: readonly (string | number)[] = []): (readonly (string | number)[])[] {
  if (typeof value !== 'object' || value === null) return [];
  const keys = Array.isArray(value) ? [...value.keys()] : Object.keys(value);
  return keys.flatMap(key => [[...path, key], ...partsOf(Reflect.get(value, key), [...path, key])]);
}

describe('lint of arbitrary input', () => {
  const { root, config } = shipped();
  const parts = partsOf(root);
  const replacement = fc.oneof(
    fc.constantFrom<unknown>(null, true, '', 0, -1, [], {}, [[]], [null], '@type', '*', '(', '9s', Number.NaN),
    fc.jsonValue({ maxDepth: 3 }),
    fc.constantFrom(...parts).map(path => path.reduce<Part>((value, key) => value[key], root)),
  );

  it('reports at least one problem for any value', () => {
    fc.assert(
      fc.property(fc.anything({ maxDepth: 4 }), value => {
        expect(lintEnvoy(value, config).problems).to.not.have.length(0);
      }),
      runs(50),
    );
  });

  it('never throws for a mutated bootstrap, and is deterministic', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.constantFrom(...parts), replacement), { minLength: 1, maxLength: 3 }),
        changes => {
          const value: Part = structuredClone(root);
          for (const [path, other] of changes) {
            const around = path.slice(0, -1).reduce<Part>((inner, key) => inner?.[key], value);
            if (typeof around === 'object' && around !== null) around[path.at(-1) ?? ''] = structuredClone(other);
          }
          const problems = lintEnvoy(value, config).problems;
          expect(lintEnvoy(value, config).problems).to.deep.equal(problems);
          const odd = problems.filter(({ rule, message }) => !(rule in lintRules) || !message.endsWith(` [${rule}]`));
          expect(odd).to.deep.equal([]);
        },
      ),
      runs(30),
    );
  });

  it('is not slowed down by a regex with catastrophic backtracking', () => {
    const problems = problemsAfter(p => {
      p.check.decoder_header_mutation_rules.allow_expression.regex =
        '((a*)*)*((x|x)*)*-(auth|a.*th)+-(.*)*!|x.*|auth.*';
    });
    expect(problems).to.deep.equal([]);
  });

  it('takes patterns for what RE2 takes them for', () => {
    const pieces = String.raw`a x - . \. \w [\W] [^a-z0-9] [ax-] [-_] [a-x] [A-C] [a-x-a] [z-a] * + ? *? {2} {0,2} {2,1} { ^ $ | ( ) (?: _ \b`;
    const name = fc.string({ unit: fc.constantFrom(...'ax-._0A'), maxLength: 8 });
    const letters = ['a', 'aa', 'ax', 'x', 'xa', 'xaa', 'x-', 'xx-a', 'a-'];
    const parts = fc.array(fc.constantFrom(...pieces.split(' ')), { maxLength: 9 });
    fc.assert(
      fc.property(fc.constantFrom('', '(?i)'), parts, fc.array(name, { maxLength: 30 }), (flag, all, names) => {
        const text = flag + all.join('');
        const own = parseNameRegex(text);
        if (own === undefined) return;
        const re2 = RE2JS.compile(text);
        expect(matchedBy(own, createNameSet(names))).to.deep.equal(names.filter(each => re2.testExact(each)));
      }),
      { ...runs(1000), examples: ['a?x', 'xa+', 'a*', '.*x.*-|.*a'].map(each => ['', [each], [...letters, '']]) },
    );
    const read = ['x[^a-z0-9]auth.*', '(?i)^(a|b(c|d)+)*$', 'a{2}{3}', '(a{2}){3}', 'a**', '[b-a]'].map(parseNameRegex);
    expect(read.map(each => each !== undefined)).to.deep.equal([true, true, false, false, false, false]);
  });

  const many = <Item>(count: number, item: (i: number) => Item): Item[] =>
    Array.from({ length: count }, (_, i) => item(i));

  it('lists 10,000 places of a kind, and counts the others', () => {
    const { problems, notJudged } = lintAfter(p => {
      const tunnels = many(10_003, () => ({ a: 1, match: { connect_matcher: {} }, route: { cluster: 'upstream' } }));
      p.routes.unshift(...tunnels);
    });
    const rest = [...problems, ...notJudged].filter(({ path }) => path.length === 0);
    expect(rest.map(({ count, message }) => [count, /^[^:]*/.exec(message)?.[0]])).to.deep.equal([
      [3, 'has more such places than the 10000 listed'],
      [3, 'has more such places than the 10000 listed'],
    ]);
    // A place that is not listed has the remark alone.
    expect([problems.length, notJudged.length]).to.deep.equal([10_001, 10_004]);
  });

  const ofRoute = (i: number) => ({
    match: { prefix: `/api/subscriptions/${i}` },
    route: { cluster: 'upstream' },
    typed_per_filter_config: { z: { '@type': 'x/y' } },
    request_headers_to_add: many(60, () => ({ header: { key: 'a' } })),
  });
  const excesses: readonly (readonly [string, (p: Shipped) => unknown, string])[] = [
    [
      'more regular expressions of other kinds',
      p =>
        p.early.push(...many(9_000, i => ({ remove_on_match: { key_matcher: { safe_regex: { regex: `\\b${i}` } } } }))),
      'is one of thousands of regular expressions, more than the lint reads',
    ],
    [
      'more repetitions in regular expressions',
      p =>
        p.early.push(
          ...many(40, i => ({ remove_on_match: { key_matcher: { safe_regex: { regex: `\\b.{0,1000}${i}` } } } })),
        ),
      'is one of thousands of regular expressions, more than the lint reads',
    ],
    [
      'more filters for so many routes',
      p => {
        p.routes.unshift(...many(600, ofRoute));
        p.filters.unshift(...many(600, i => ({ name: `f${i}`, disabled: true })));
      },
      'has more filters than the lint judges for so many routes with settings of filters',
    ],
    [
      'more upgrades with filters',
      p => Object.assign(p.manager, { upgrade_configs: many(17, () => ({ upgrade_type: 'a', filters: [{}] })) }),
      'has more than 16 upgrades with filters of their own',
    ],
    [
      'more header mutations for so many routes',
      p => {
        Object.assign(p.manager.route_config, {
          request_headers_to_add: many(2_000, () => ({ header: { key: 'a' } })),
        });
        p.routes.unshift(...many(2_100, ofRoute));
      },
      'has more filters and header mutations than the lint follows for so many routes',
    ],
  ];
  it('names routes of a control plane that too many listeners share', () => {
    const manager = typed('envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager', {
      rds: { route_config_name: 'a' },
    });
    const listener = { filter_chains: [{ filters: [{ typed_config: manager }] }] };
    const routes = many(1000, () => ({ match: { path: '/' }, route: { cluster: 'a' } }));
    const ofType = (type: string, fields: object) => ({
      '@type': `type.googleapis.com/envoy.admin.v3.${type}`,
      ...fields,
    });
    const configs = [
      ofType('ListenersConfigDump', { static_listeners: many(160, () => ({ listener })) }),
      ofType('RoutesConfigDump', {
        dynamic_route_configs: [{ route_config: { name: 'a', virtual_hosts: [{ routes }] } }],
      }),
    ];
    const { problems } = lintEnvoy({ configs }, config);
    expect(problems.map(({ message }) => message.split(': ')[0])).to.include(
      'has too many routes to be judged for each of its listeners',
    );
  });

  it('names more dumps than it reads', () => {
    const dump = { configs: [{ '@type': 'type.googleapis.com/envoy.admin.v3.ListenersConfigDump' }] };
    const { problems } = lintEnvoy(Object.fromEntries(many(501, i => [`pod-${i}`, dump])), config);
    expect(problems.map(({ message }) => message.split(': ')[0])).to.include('has more than 500 dumps');
  });

  for (const [name, edit, message] of excesses)
    it(`names ${name} than it follows`, () => {
      expect(problemsAfter(edit).some(each => each.message.startsWith(`${message}: `))).to.equal(true);
    });
});

describe('knownMessages', () => {
  const fieldsOf = (text: string) => text.split(/\s+/).flatMap(word => /^[\w.]+/.exec(word)?.[0] ?? []);

  it('has no message and no field that Envoy does not have', () => {
    const ofEnvoy: Readonly<Record<string, string>> = messages;
    const rows = Object.entries(knownMessages).filter(
      ([name, text]) => !['', '*'].includes(text) && name.includes('.'),
    );
    const wrong = rows.flatMap(([name, text]) => {
      const real = fieldsOf(ofEnvoy[name] ?? '');
      return fieldsOf(text).flatMap(field => (real.includes(field) ? [] : `${name}.${field}`));
    });
    expect(wrong).to.deep.equal([]);
  });

  it('tells a field that Envoy does not have from one that is not judged', () => {
    const says = (edit: (p: Shipped) => unknown) => lintAfter(edit).notJudged.map(({ message }) => message);
    expect(says(p => Object.assign(p.manager, { a_field_of_a_later_envoy: true }))).to.deep.equal([
      'is no field of Envoy 1.40',
    ]);
    expect(says(p => Object.assign(p.manager, { proxy100Continue: true }))).to.deep.equal([]);
    expect(says(p => Object.assign(p.upstream, { stats_matcher: { reject_all: true } }))).to.deep.equal([
      'is not judged: leaves out statistics, perhaps those that alerts read',
    ]);
    expect(says(p => Object.assign(p.manager, { typed_header_validation_config: {} }))).to.deep.equal([
      'is not judged: the lint does not know what it does',
    ]);
  });
});
