// `test`: runs a user's table of requests against the policy and prints TAP.
import { writeFile } from 'node:fs/promises';
import { loadBoundedFile } from '../files/bounded-file.ts';
import { errorCode } from '../text/problem.ts';
import { parseCases } from '../toolkit/policy-test/cases.ts';
import { tapLine, tapPlan, tapSummary, toJunit } from '../toolkit/policy-test/report.ts';
import { runCases } from '../toolkit/policy-test/run-cases.ts';
import { CommandError, defaultConfigFile, defineCommand, misconfigured } from './command.ts';
import { loadFetchSettings } from './command-input.ts';

const usage = `account-authz test [--config FILE] CASES.yaml [--junit FILE] [--without-files]

Decides each request of a table as the service would and compares the decision with the expected one. Prints TAP 14.
Claims are signed with a temporary key that stands in for the issuer's keys. Only a case with a token of its own needs the keys
of the issuer.

  --config FILE    the configuration, ${defaultConfigFile} if not given
  --junit FILE     also writes the results as JUnit XML
  --without-files  leaves out the files that the configuration names, its revocation list included, for a machine that does not
                   have them

  cases:
    - name: a member reads its own account
      claims: { uid: alice, app: web, acc: acme, role: member }   # or token: eyJ…; neither: a request without a token
      request: { method: GET, path: /api/subscriptions/accounts/acme, headers: { x-account-id: acme } }
      expect: { reason: allowed, role: member }                   # or allowed, or the reason of a refusal; also acc, scope, actor
      at: 2026-11-23T04:00:00Z                                    # the time of the check; now if not given

Claims without iss, aud, iat or exp get valid ones; null leaves a claim out.

Example: account-authz test --config config.yaml cases.yaml --junit results.xml

Exit code: 0 all as expected, 3 some not, 1 invalid configuration or cases, or usage error.
`;

export const command = defineCommand({
  name: 'test',
  usage,
  options: {
    config: { type: 'string', default: defaultConfigFile },
    junit: { type: 'string' },
    'without-files': { type: 'boolean', default: false },
  },
  maxOperands: 1,
  async run({ values, operands: [operand], io }) {
    const { config: file, junit } = values;
    if (operand === undefined) throw new CommandError('the file of cases is required: account-authz test CASES.yaml');
    const settings = await loadFetchSettings('test', file, io, { readsNamedFiles: !values['without-files'] });
    const parsedCases = parseCases(await loadBoundedFile(operand), {
      needsHost: settings.config.account.hosts !== undefined,
    });
    if (parsedCases.kind === 'misconfiguration') throw misconfigured(operand, parsedCases);
    const { cases } = parsedCases;
    io.stdout.write(tapPlan(cases.length));
    let number = 0;
    const results = await runCases(settings, cases, result => {
      number += 1;
      io.stdout.write(tapLine(result, number));
    });
    io.stdout.write(tapSummary(results));
    if (junit !== undefined)
      await writeFile(junit, toJunit(operand, results)).catch((error: unknown) => {
        throw new CommandError(`--junit: the file cannot be written (${errorCode(error) ?? 'error'})`);
      });
    return results.every(({ isAsExpected }) => isAsExpected) ? 0 : 3;
  },
});
