// Tokens outside Authorization, and broken Authorization, in a running service.
import { expect } from 'chai';
import { type CheckRequestParts, rawHeader } from '../../lab/check-request.ts';
import { type ServiceLab, startServiceLab } from '../../lab/service.ts';
import { allowed, answerOf, invalid, mine } from './status-and-reason.ts';

const missing = '401 token_missing';

const badToken = '401 token_invalid';

describe('service', () => {
  let lab: ServiceLab;
  let token: string;
  before(async () => {
    lab = await startServiceLab({ config: { apps: ['web'] } });
    token = await lab.token();
  });
  after(() => lab.stop());

  describe('token outside Authorization', () => {
    const places: readonly (readonly [name: string, parts: (token: string) => CheckRequestParts])[] = [
      ['H-001 absent', () => ({})],
      ['H-002 after an empty Authorization', () => ({ headers: { authorization: '' } })],
      ['H-021 in the query', text => ({ path: `${mine}?access_token=${text}` })],
      ['H-023 in a cookie', text => ({ headers: { cookie: `access_token=${text}` } })],
      ['H-023 in x-access-token', text => ({ headers: { 'x-access-token': text } })],
      ['H-023 among the WebSocket protocols', text => ({ headers: { 'sec-websocket-protocol': `bearer, ${text}` } })],
      ['H-025 in Proxy-Authorization', text => ({ headers: { 'proxy-authorization': `Bearer ${text}` } })],
      ['H-026 in X-Forwarded-Authorization', text => ({ headers: { 'x-forwarded-authorization': `Bearer ${text}` } })],
      ['H-026 in X-Original-Authorization', text => ({ headers: { 'x-original-authorization': `Bearer ${text}` } })],
      ['H-031 in no headers at all', () => ({ http: { headers: {}, header_map: null } })],
    ];
    for (const [name, parts] of places) {
      it(`${name} is answered with ${missing}`, async () => {
        for (const raw of [false, true]) {
          expect(answerOf(await lab.check(undefined, { raw, ...parts(token) })), `raw: ${raw}`).to.equal(missing);
        }
      });
    }

    it('H-022 is ignored in the query when Authorization has a token', async () => {
      const stranger = await lab.token({ claims: { acc: 'acct2' } });
      const path = `${mine}?access_token=${stranger}`;
      expect(answerOf(await lab.check(`Bearer ${token}`, { path }))).to.equal(allowed);
    });

    it('L-002 is never written to log, response or metrics from the query or a cookie', async () => {
      const elsewhere = await lab.token({ claims: { uid: 'elsewhere' } });
      const parts = { path: `${mine}?access_token=${elsewhere}`, headers: { cookie: `t=${elsewhere}` } };
      const response = await lab.check(undefined, parts);
      const metrics = await (await lab.admin('/metrics')).text();
      const written = [JSON.stringify(lab.log), JSON.stringify(response), metrics].join('\n');
      for (const part of elsewhere.split('.')) expect(written).to.not.contain(part);
      expect(written).to.not.contain('access_token');
    });
  });

  describe('malformed Authorization', () => {
    const forms: readonly (readonly [name: string, authorization: (token: string) => string, answer: string])[] = [
      ['H-006 a no-break space', text => `Bearer\u00a0${text}`, missing],
      ['H-009 Basic', () => 'Basic dTpw', missing],
      ['H-015 a second word', text => `Bearer ${text} b`, badToken],
      ['H-015 quotes', text => `Bearer "${text}"`, badToken],
      ['H-015 a parameter after a comma', text => `Bearer ${text},x=1`, invalid],
      ['H-029 a folded line', text => `Bearer\r\n ${text}`, missing],
      ['H-029 a line feed in the token', text => `Bearer ${text.slice(0, 9)}\n${text.slice(9)}`, badToken],
      [
        "H-030 Envoy's substitute for an invalid byte",
        text => `Bearer ${text.slice(0, 9)}!${text.slice(10)}`,
        badToken,
      ],
      ['J-035 PBES2 with a count of 2^31 - 1', () => `Bearer ${pbes2()}`, badToken],
      ['J-038 the flattened JSON serialization', text => `Bearer ${flattened(text)}`, invalid],
      ['J-067 a hundred thousand dots', () => `Bearer ${'.'.repeat(100_000)}`, badToken],
      ['J-078 a token one byte above the limit', () => `Bearer ${'a'.repeat(8193)}`, badToken],
      ['J-079 a token of 200 KB', text => `Bearer ${text}${'A'.repeat(200_000)}`, badToken],
    ];
    for (const [name, authorization, answer] of forms) {
      it(`answers ${name} with ${answer}`, async () => {
        for (const raw of [false, true]) {
          expect(answerOf(await lab.check(authorization(token), { raw })), `raw: ${raw}`).to.equal(answer);
        }
      });
    }

    it('H-010 H-013 refuses two Authorization lines, equal or different', async () => {
      const second = await lab.token({ claims: { uid: 'u-2' } });
      for (const line of [token, second]) {
        const authorization = [`Bearer ${token}`, `Bearer ${line}`];
        for (const raw of [false, true]) {
          expect(answerOf(await lab.check(undefined, { raw, headers: { authorization } }))).to.equal(invalid);
        }
      }
    });

    it('H-017 refuses a header map and a header list with different values', async () => {
      const header_map = { headers: [rawHeader('authorization', `Bearer ${await lab.token()}x`)] };
      const parts = { raw: false, http: { header_map } };
      expect(answerOf(await lab.check(`Bearer ${token}`, parts))).to.equal(invalid);
    });

    for (const [name, bytes] of Object.entries({ 'invalid UTF-8': 'ff', 'a NUL': '00', 'CR LF': '0d0a' })) {
      it(`H-019 refuses ${name} in the token`, async () => {
        const value = Buffer.concat([Buffer.from(`Bearer ${token}`), Buffer.from(bytes, 'hex'), Buffer.from('A')]);
        const header_map = { headers: [rawHeader('authorization', value)] };
        expect(answerOf(await lab.check(undefined, { http: { header_map } }))).to.equal(badToken);
      });
    }
  });
});

function pbes2(): string {
  const header = { alg: 'PBES2-HS256+A128KW', enc: 'A128GCM', p2c: 2_147_483_647, p2s: 'AAAA', kid: 'k1' };
  return `${Buffer.from(JSON.stringify(header)).toString('base64url')}.AA.AA.AA.AA`;
}

function flattened(token: string): string {
  const [header, payload, signature] = token.split('.');
  return JSON.stringify({ payload, protected: header, signature });
}
