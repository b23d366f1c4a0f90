// Child process of key-thread.test.ts: fetches one document in the key thread and prints its kind or problem.
// Arguments: its URL, and optionally a caFile.
import { createKeyThread } from '../../src/keys/key-thread.ts';

const [url = '', caFile] = process.argv.slice(2);
const { getDocument, stop } = createKeyThread();
// The thread does not keep the process alive.
const alive = setInterval(() => undefined, 1000);
const document = await getDocument({ url, caFile, proxy: {} }, new AbortController().signal);
console.log(document.kind === 'problem' ? document.problem : document.kind);
stop();
clearInterval(alive);
