// Which answers of a contender the bench accepts before it times it.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadSync } from '@grpc/proto-loader';
import { expect } from 'chai';
import { projectDirectory } from '../../../bench/speed/lab.ts';
import { problemOf } from '../../../bench/speed/preflight.ts';
import { parseDockerfile } from '../../../bench/speed/runtime.ts';

const definitions = loadSync('envoy/service/auth/v3/external_auth.proto', {
  includeDirs: [join(projectDirectory, 'proto')],
  keepCase: true,
});

function bytes(message: object): Buffer {
  const service = definitions['envoy.service.auth.v3.Authorization'];
  if (service === undefined || 'format' in service || service.Check === undefined) throw new Error('no service');
  return service.Check.responseSerialize(message);
}

function allowFor(account: string, ...removed: readonly string[]): Buffer {
  const headers = [{ header: { key: 'x-auth-acc', value: account } }];
  return bytes({ status: { code: 0 }, ok_response: { headers, headers_to_remove: removed } });
}

function deny(status: number): Buffer {
  return bytes({ status: { code: 7 }, denied_response: { status: { code: status } } });
}

const allow = allowFor('acct-1', 'authorization');
const peer = { family: 'peer', isCoarse: false } as const;
const coarse = { family: 'peer', isCoarse: true } as const;
const floor = { family: 'floor', isCoarse: false } as const;

describe('the check of a contender before it is timed', () => {
  const rows = [
    ['an allow for the account', peer, allow, 200, undefined],
    ['an allow for another account', peer, allowFor('acct-2'), 200, 'x-auth-acc is acct-2'],
    ['an allow that leaves a header', peer, allowFor('acct-1'), 200, 'removes '],
    ['an allow in place of a refusal', peer, allow, 403, '200 instead of 403'],
    ['the expected refusal', peer, deny(403), 403, undefined],
    ['a refusal with another status', peer, deny(403), 401, '403 instead of 401'],
    ['an empty answer', peer, Buffer.alloc(0), 200, '0 instead of 200'],
    ['a 403 in place of a 404, from a coarse contender', coarse, deny(403), 404, undefined],
    ['an allow in place of a 404, from a coarse contender', coarse, allow, 404, '200 instead of 404'],
    ['a refusal in place of an allow, from a coarse contender', coarse, deny(403), 200, '403 instead of 200'],
    ['the message of the product, from a do-nothing contender', floor, allow, 200, undefined],
    ['another message, from a do-nothing contender', floor, allowFor('acct-2'), 200, 'not the message of the product'],
  ] as const;
  for (const [name, contender, answer, status, problem] of rows) {
    it(`${problem === undefined ? 'accepts' : 'rejects'} ${name}`, () => {
      expect(problemOf(contender, answer, { status, alsoRemoved: [] }, allow, 'acct-1')).to.equal(problem);
    });
  }
});

describe('the runtime of the JavaScript contenders', () => {
  it('is the one of the image', async () => {
    const { major, flags, environment } = parseDockerfile(await readFile(join(projectDirectory, 'Dockerfile'), 'utf8'));
    expect(Number(major)).to.be.at.least(26);
    expect(flags.filter(flag => !flag.startsWith('--'))).to.deep.equal([]);
    expect(environment).to.include({ NODE_ENV: 'production' });
  });
});
