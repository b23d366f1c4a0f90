// Equivalent spellings of a bootstrap, each confirmed with a real Envoy 1.40.0: the lint treats them as equal.
import { expect } from 'chai';
import { type LintProblem, lintEnvoy } from '../../../src/toolkit/lint/lint.ts';
import { ProtoValue } from '../../../src/toolkit/lint/proto-value.ts';
import { type Part, problemsAfter, rulesAfter, type Shipped, shipped, typed } from './shipped.ts';

function toCamelCase(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(toCamelCase);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      // Keys of maps and types stay as they are.
      /[.@]/.test(key) ? key : key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase()),
      toCamelCase(inner),
    ]),
  );
}

function toTypedStruct(config: Part, type = 'xds.type.v3.TypedStruct'): Part {
  const { '@type': url, ...value } = config;
  return { '@type': `type.googleapis.com/${type}`, type_url: url, value };
}

function problemsInCamelCase(edit: (parts: Shipped) => unknown): readonly LintProblem[] {
  const parts = shipped();
  edit(parts);
  return lintEnvoy(toCamelCase(parts.root), parts.config).problems;
}

const readOf = (value: unknown): { value: ProtoValue; unreadable: string[] } => {
  const unreadable: string[] = [];
  return { value: new ProtoValue(value, (_, message) => unreadable.push(message)), unreadable };
};

describe('lint of equivalent spellings', () => {
  it('accepts the shipped bootstrap in camelCase', () => {
    expect(problemsInCamelCase(() => undefined)).to.deep.equal([]);
  });

  it('reports a mistake in camelCase at the field name of the file', () => {
    const [problem, ...more] = problemsInCamelCase(p => {
      p.check.failure_mode_allow = true;
    });
    expect(more).to.deep.equal([]);
    expect(problem?.rule).to.equal('failure-mode-allow');
    expect(problem?.path.at(-1)).to.equal('failureModeAllow');
  });

  it('reports missing fields in camelCase', () => {
    const problems = problemsInCamelCase(p => {
      delete p.check.status_on_error;
      delete p.manager.early_header_mutation_extensions;
      delete p.authz.typed_extension_protocol_options;
    });
    expect(problems.map(({ rule }) => rule)).to.have.members([
      'owned-headers-kept',
      'status-on-error',
      'authz-protocol',
    ]);
  });

  const wrapped: readonly (readonly [name: string, edit: (parts: Shipped) => unknown])[] = [
    ['an xds TypedStruct', p => Object.assign(p.filters[1], { typed_config: toTypedStruct(p.check) })],
    [
      'a udpa TypedStruct',
      p => Object.assign(p.filters[1], { typed_config: toTypedStruct(p.check, 'udpa.type.v1.TypedStruct') }),
    ],
    ['a type URL without a host', p => Object.assign(p.check, { '@type': p.check['@type'].split('/')[1] })],
    ['a filter with another name', p => Object.assign(p.filters[1], { name: 'guard' })],
    [
      'a listener in a TypedStruct',
      p => Object.assign(p.listener.filter_chains[0].filters[0], { typed_config: toTypedStruct(p.manager) }),
    ],
  ];
  for (const [name, edit] of wrapped) {
    it(`reads the settings in ${name}`, () => {
      expect(rulesAfter(edit)).to.deep.equal([]);
      const withMistake = (p: Shipped) => {
        p.check.failure_mode_allow = true;
        edit(p);
      };
      expect(rulesAfter(withMistake)).to.deep.equal(['failure-mode-allow']);
    });
  }

  it('finds the per-route settings by the name of the filter', () => {
    const rules = rulesAfter(p => {
      p.filters[1].name = 'guard';
      p.routes[0].typed_per_filter_config = {
        guard: toTypedStruct(typed('ext_authz.v3.ExtAuthzPerRoute', { disabled: 'on' })),
      };
    });
    expect(rules).to.deep.equal(['unchecked-route']);
  });

  it('reads a single value as a list of one', () => {
    expect(
      rulesAfter(p => {
        p.root.static_resources.listeners = p.listener;
        p.listener.filter_chains = p.listener.filter_chains[0];
      }),
    ).to.deep.equal([]);
  });

  it('reads numbers as enum values', () => {
    expect(
      rulesAfter(p => {
        p.check.transport_api_version = 2;
        p.check.status_on_error = { code: '503' };
        p.manager.path_with_escaped_slashes_action = 2;
        p.manager.common_http_protocol_options.headers_with_underscores_action = '1';
      }),
    ).to.deep.equal([]);
  });

  it('reads null as absent', () => {
    expect(rulesAfter(p => Object.assign(p.check, { status_on_error: null, failure_mode_allow: null }))).to.deep.equal([
      'status-on-error',
    ]);
  });

  for (const value of [true, 'true', 'True', 'yes', 'Y', 'on', 't', '1', { value: true }]) {
    it(`reads ${JSON.stringify(value)} as true`, () => {
      expect(readOf(value).value.flag()).to.equal(true);
    });
  }
  for (const value of [false, 'FALSE', 'no', 'n', 'off', '0', { value: false }]) {
    it(`reads ${JSON.stringify(value)} as false`, () => {
      expect(readOf(value).value.flag()).to.equal(false);
    });
  }

  const durations: readonly (readonly [value: unknown, seconds: number | undefined])[] = [
    ['0.5s', 0.5],
    ['0.500000000s', 0.5],
    ['1s', 1],
    [{ seconds: '1', nanos: 500_000_000 }, 1.5],
    ['500ms', undefined],
    ['.5s', undefined],
    ['-1s', undefined],
    ['1', undefined],
    [1, undefined],
  ];
  for (const [value, seconds] of durations) {
    it(
      seconds === undefined
        ? `rejects ${JSON.stringify(value)} as a duration`
        : `reads ${JSON.stringify(value)} as ${seconds} s`,
      () => {
        const { value: duration, unreadable } = readOf(value);
        expect(duration.seconds()).to.equal(seconds);
        expect(unreadable).to.have.length(seconds === undefined ? 1 : 0);
      },
    );
  }

  it('reports the place of a present field and of a missing one', () => {
    const places = problemsAfter(p => {
      p.check.clear_route_cache = true;
      delete p.check.status_on_error;
    }).map(({ path }) => path.slice(-2).join('.'));
    expect(places).to.have.members(['typed_config.clear_route_cache', 'typed_config.status_on_error']);
  });
});
