// Signs tokens with JavaScript libraries: reads the job named by the first argument, prints one JSON line per token.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

// The libraries are installed in the folder of the second argument.
const require = createRequire(pathToFileURL(`${process.argv[3]}/`));
const load = async name => import(pathToFileURL(require.resolve(name)));
const [jose, { default: jsonwebtoken }, { createSigner }] = await Promise.all(
  ['jose', 'jsonwebtoken', 'fast-jwt'].map(load),
);
const { keys, claims } = JSON.parse(readFileSync(process.argv[2], 'utf8'));

const libraries = {
  jose: async ({ alg, kid, pem }, payload) =>
    new jose.SignJWT(payload).setProtectedHeader({ alg, kid, typ: 'JWT' }).sign(await jose.importPKCS8(pem, alg)),
  jsonwebtoken: ({ alg, kid, pem }, payload) => jsonwebtoken.sign(payload, pem, { algorithm: alg, keyid: kid }),
  'fast-jwt': ({ alg, kid, pem }, payload) => createSigner({ algorithm: alg, key: pem, kid })(payload),
};
for (const [library, sign] of Object.entries(libraries)) {
  for (const key of keys) {
    for (const payload of claims) {
      try {
        console.log(JSON.stringify({ library, alg: key.alg, token: await sign(key, payload) }));
      } catch {
        console.log(JSON.stringify({ library, alg: key.alg }));
      }
    }
  }
}
