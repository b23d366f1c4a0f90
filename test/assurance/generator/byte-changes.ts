// Unusual encodings of a message: repeated fields, split messages, unknown fields, lost or changed bytes. Envoy sends
// none of these; a parser that reads them differently from protobuf decides about another request.
import type { CheckMessage } from '../oracle/message.ts';
import { requestBytes } from '../wire.ts';
import { pickRow, type Row } from './changes.ts';
import type { Random } from './random.ts';
import { withHttp } from './request-draft.ts';

type Change = (random: Random, message: CheckMessage) => Buffer;

function row(weight: number, name: string, change: Change): Row<Change> {
  return [weight, name, change];
}

const rows: readonly Row<Change>[] = [
  row(3, 'a decoy of the path before it', (_, message) =>
    Buffer.concat([requestBytes(decoyOf(message)), requestBytes(message)]),
  ),
  row(3, 'a decoy of the path after it', (_, message) =>
    Buffer.concat([requestBytes(message), requestBytes(decoyOf(message))]),
  ),
  row(2, 'the message twice', (_, message) => Buffer.concat([requestBytes(message), requestBytes(message)])),
  row(3, 'the message in two parts', (random, message) => {
    const parts = [
      withHttp(message, http => ({ ...http, path: '', method: '' })),
      withHttp(message, http => ({ ...http, headers: {}, header_map: null })),
    ];
    return Buffer.concat((random.chance(0.5) ? parts : parts.reverse()).map(requestBytes));
  }),
  row(2, 'a message beside it whose headers are others', (random, message) => {
    const other = withHttp(message, http => ({
      ...http,
      headers: { authorization: 'Bearer x', 'x-account-id': 'acct2' },
      header_map: null,
    }));
    const parts = [requestBytes(message), requestBytes(other)];
    return Buffer.concat(random.chance(0.5) ? parts : parts.reverse());
  }),
  row(3, 'an unknown field', (random, message) => {
    // Field 15 as a number, field 3 as bytes, field 536870911 as a fixed32, group 7.
    const field = random.pick([
      [0x78, 0x01],
      [0x1a, 0x02, 0x08, 0x00],
      [0xfd, 0xff, 0xff, 0xff, 0x0f, 1, 2, 3, 4],
      [0x3b, 0x3c],
    ]);
    const parts = [requestBytes(message), Buffer.from(field)];
    return Buffer.concat(random.chance(0.5) ? parts : parts.reverse());
  }),
  row(2, 'the bytes cut off', (random, message) => cut(requestBytes(message), random)),
  row(6, 'a byte changed', (random, message) => {
    const bytes = Buffer.from(requestBytes(message));
    if (bytes.length > 0) bytes.writeUInt8(random.below(256), random.below(bytes.length));
    return bytes;
  }),
  row(3, 'a byte put in', (random, message) => {
    const bytes = requestBytes(message);
    const at = random.below(bytes.length + 1);
    return Buffer.concat([bytes.subarray(0, at), Buffer.from([random.below(256)]), bytes.subarray(at)]);
  }),
  row(1, 'no bytes', () => Buffer.alloc(0)),
];

/** The changed bytes of a message, and the name of the change. */
export function changeBytes(
  random: Random,
  message: CheckMessage,
): { readonly bytes: Buffer; readonly change: string } {
  const [, change, make] = pickRow(random, rows);
  return { bytes: make(random, message), change };
}

/** The same request with the path of another account and without headers. */
function decoyOf(message: CheckMessage): CheckMessage {
  const path = '/api/subscriptions/accounts/acct2';
  return withHttp(message, http => ({ ...http, path, headers: {}, header_map: null }));
}

function cut(bytes: Buffer, random: Random): Buffer {
  return bytes.subarray(0, random.below(bytes.length + 1));
}
