// The middleware of docs/upstream.md, as a reader copies it: it gives the handler the identity, and refuses a request without one. Django and
// Spring are those of test/assurance/parsers; where a machine lacks a language or its framework, its test is skipped.
import { execFile } from 'node:child_process';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect } from 'chai';
import express from 'express';
import { send } from '../../demo/http-client.ts';
import { readSnippet } from '../support/snippets.ts';

const run = promisify(execFile);
const page = 'docs/upstream.md';
const cache = fileURLToPath(new URL('../../.cache/parsers/', import.meta.url));
const headers = { 'x-auth-uid': 'u1', 'x-auth-app': 'web', 'x-auth-acc': 'acme', 'x-auth-role': 'owner' };
/** What each program prints: the answer without identity headers, then what the handler got with them. */
const expected = '401\nu1 web acme owner\n';

describe('the middleware of docs/upstream.md', function () {
  this.timeout(120_000);
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'account-authz-middleware-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  async function write(name: string, text: string): Promise<string> {
    const file = join(folder, name);
    await writeFile(file, text);
    return file;
  }

  it('works in Express', async () => {
    const file = await write('identity.mjs', `export ${readSnippet(page, 'js', 'request.get')}`);
    const { identity } = await import(file);
    const app = express().use(identity, (request, response) => {
      const {
        uid,
        app: application,
        acc,
        role,
      } = (request as unknown as { identity: Record<string, string> }).identity;
      response.send(`${uid} ${application} ${acc} ${role}`);
    });
    const server = createServer(app);
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
    try {
      const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      const refused = await send({ origin, target: '/' });
      const served = await send({ origin, target: '/', headers });
      expect(`${refused.status}\n${served.body}\n`).to.equal(expected);
    } finally {
      server.close();
    }
  });

  it('works in Go', async function () {
    if (!(await canRun('go', 'version'))) this.skip();
    const imports = ['context', 'fmt', 'net/http', 'net/http/httptest'].map(name => `import "${name}"\n`).join('');
    const sets = Object.entries(headers).map(([name, value]) => `r.Header.Set("${name}", "${value}")\n`);
    const main = `func main() {
      handler := WithIdentity(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
        i := IdentityOf(r)
        fmt.Println(i.UID, i.App, i.Acc, i.Role)
      }))
      r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
      handler.ServeHTTP(w, r)
      fmt.Println(w.Code)
      ${sets.join('')}
      handler.ServeHTTP(httptest.NewRecorder(), r)
    }`;
    const file = await write('main.go', `package main\n${imports}${readSnippet(page, 'go', 'WithIdentity')}${main}`);
    expect((await run('go', ['run', file], { cwd: folder })).stdout).to.equal(expected);
  });

  it('works in Django', async function () {
    const python = join(cache, 'venv/bin/python');
    if (!(await canRun(python, '-c', 'import django'))) this.skip();
    const main = `
from django.conf import settings
settings.configure()
from django.test import RequestFactory
def view(request):
    i = request.identity
    print(i.uid, i.app, i.acc, i.role)
handler = identity(view)
print(handler(RequestFactory().get("/")).status_code)
handler(RequestFactory().get("/", headers=${JSON.stringify(headers)}))
`;
    const file = await write('main.py', readSnippet(page, 'python', 'get_response') + main);
    expect((await run(python, [file])).stdout).to.equal(expected);
  });

  it('works in Spring', async function () {
    const classPath = await readFile(join(cache, 'class-path.txt'), 'utf8').catch(() => '');
    const [firstJar = ''] = classPath.split(':');
    if (!(await exists(firstJar)) || !(await canRun('java', '-version'))) this.skip();
    const imports = [
      ...['jakarta.servlet.*', 'jakarta.servlet.http.*', 'java.io.IOException', 'org.springframework.mock.web.*'],
      'org.springframework.web.filter.OncePerRequestFilter',
    ].map(name => `import ${name};\n`);
    const adds = Object.entries(headers).map(([name, value]) => `request.addHeader("${name}", "${value}");`);
    // The launcher of a source file takes its first class, so that the program stands first.
    const main = `class Main {
  public static void main(String[] args) throws Exception {
    var refused = new MockHttpServletResponse();
    new IdentityFilter().doFilter(new MockHttpServletRequest(), refused, new MockFilterChain());
    System.out.println(refused.getStatus());
    var request = new MockHttpServletRequest();
    ${adds.join('\n    ')}
    new IdentityFilter().doFilter(request, new MockHttpServletResponse(), (served, response) -> {
      var i = (Identity) served.getAttribute("identity");
      System.out.println(i.uid() + " " + i.app() + " " + i.acc() + " " + i.role());
    });
  }
}
`;
    const file = await write('Main.java', imports.join('') + main + readSnippet(page, 'java', 'OncePerRequestFilter'));
    expect((await run('java', ['-cp', classPath.trim(), file])).stdout).to.equal(expected);
  });
});

function canRun(program: string, ...args: readonly string[]): Promise<boolean> {
  return run(program, args).then(
    () => true,
    () => false,
  );
}

function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
