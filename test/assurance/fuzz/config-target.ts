// The reader of a configuration file, with its invariants.
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { audience, issuer, now } from '../../../lab/token.ts';
import { createEngine } from '../../../src/check/engine.ts';
import { validateConfig } from '../../../src/config/load.ts';
import { fixedKeyRings } from '../../support/fixed-key-rings.ts';
import { inJson, inLines } from './shapes.ts';
import { must, type Target, words } from './target.ts';

const project = fileURLToPath(new URL('../../../', import.meta.url));

/** `issuerSettings`: members of an issuer with several accounts. */
export function configTarget(issuerSettings: Readonly<Record<string, unknown>>): Target {
  const smallest = {
    issuers: [{ issuer, audiences: [audience], jwksUrl: 'https://idp.test/jwks' }],
    routes: [{ path: '/api/subscriptions/:account_id/*', roles: ['owner'] }],
    account: { headers: ['x-account-id'], query: ['account_id'] },
    roles: { owner: ['*'] },
  };
  const multiTenant = {
    ...smallest,
    issuers: [
      {
        ...smallest.issuers[0],
        ...issuerSettings,
        claims: {
          acc: 'list',
          role: { keysOf: '/grants/{acc}', having: '{acc}' },
          scope: '/s/{acc}',
          actor: '/act/sub',
        },
      },
      { ...smallest.issuers[0], issuer: 'b', ...issuerSettings },
    ],
    account: { hosts: [':tenant.api.test', 'api.test'], parameter: 'tenant', dots: true },
    routes: [{ path: '/v1/:tenant/*', scopes: ['api'], characters: 'rfc3986' }],
    public: [{ path: '/healthz' }],
    scopes: { api: ['*'], 7: ['GET'] },
    protectedResource: { resource: 'https://api.test/v1' },
  };
  // No such file exists: a file name in the configuration leads to a problem and nothing else.
  const file = join(tmpdir(), 'account-authz-fuzz-has-no-such-folder', 'config.yaml');
  return {
    name: 'config',
    shapes: [inLines, inJson],
    seeds: [
      readFileSync(join(project, 'config.example.yaml')),
      Buffer.from(JSON.stringify(smallest)),
      Buffer.from(JSON.stringify(multiTenant)),
      Buffer.from('issuers: &a [*a]\nroutes: !!set {}\n? [x]\n: y\n'),
    ],
    dictionary: words(
      ...[
        'issuers:',
        'routes:',
        'roles:',
        'algorithms: [none]',
        'HS256',
        '- ',
        ': ',
        '&a ',
        '*a',
        '!!binary ',
        '<<: ',
        '? ',
      ],
      ...[
        '"',
        "'",
        '|\n',
        '>\n',
        '{',
        '}',
        '[',
        ']',
        '\t',
        '---\n',
        '...\n',
        '%YAML 1.1\n',
        '~',
        '0x10',
        '1e999',
        '-1',
        '.inf',
      ],
      ...[
        '__proto__',
        '/*',
        ':account_id',
        '{acc}',
        'keysOf: ',
        'wordsOf: ',
        'having: ',
        'hosts: ',
        'accounts: ',
        'scopes: ',
        'jwksFile: x',
        'listenInsecure: true',
        '\ufeff',
        '#',
        '@',
        '`',
        '"*"',
      ],
    ),
    maxBytes: 8192,
    shortRuns: 300,
    async run(input) {
      const judged = await validateConfig({ kind: 'bytes', bytes: input }, file);
      if (judged.kind === 'misconfiguration') {
        must(judged.problems.length > 0, 'a misconfiguration without a problem');
        for (const { line, column, message } of judged.problems) {
          must(line >= 1 && column >= 1, 'a place outside the file');
          must(message !== '' && !/[\p{Cc}\p{Zl}\p{Zp}]/u.test(message), 'a message that is not printable');
        }
        return 'misconfiguration';
      }
      const { config } = judged;
      must(config.issuers.length > 0 && config.routes.length > 0, 'a configuration of nothing');
      for (const each of config.issuers) {
        must(each.audiences.length > 0 && each.issuer !== '', 'an issuer that checks nothing');
        must(
          each.algorithms.length > 0 &&
            each.algorithms.every(alg => /^(?:[RPE]S(?:256|384|512)|EdDSA|Ed25519)$/.test(alg)),
          'an algorithm that is none of ours',
        );
        must(
          [each.jwksUrl, each.discoveryUrl, each.jwksFile].some(key => key !== undefined),
          'an issuer without keys',
        );
      }
      createEngine({ config, keyRings: fixedKeyRings(config, new Map()), now: () => now });
      return 'config';
    },
  };
}
