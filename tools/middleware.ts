// `npm run middleware`: the middleware of docs/upstream.md for Fastify, Go, Django and Spring, as a reader copies it, each where the machine has
// the language. Exits with 1 on a wrong answer.
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { readSnippet } from '../lab/snippets.ts';
import { hasCommand, installJava, installPython } from './assurance/foreign-parsers.ts';

interface Program {
  readonly file: string;
  readonly text: string;
  readonly command: string;
  readonly args: readonly string[];
}

const page = 'docs/upstream.md';
const headers = { 'x-auth-uid': 'u1', 'x-auth-app': 'web', 'x-auth-acc': 'acme', 'x-auth-role': 'owner' };
/** What each program prints: the answer without identity headers, then what the handler got with them. */
const expected = '401\nu1 web acme owner\n';

const frameworks: Readonly<Record<string, () => Program | undefined | Promise<Program | undefined>>> = {
  Fastify: fastifyProgram,
  Go: goProgram,
  Django: djangoProgram,
  Spring: springProgram,
};

/** Installs Fastify into .cache/middleware. */
function fastifyProgram(): Program {
  const folder = fileURLToPath(new URL('../.cache/middleware/', import.meta.url));
  const options = ['--no-save', '--no-package-lock', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  const install = ['install', '--prefix', folder, ...options, 'fastify@5'];
  const { status } = spawnSync('npm', install, { stdio: ['ignore', 'ignore', 'inherit'] });
  if (status !== 0) throw new Error(`npm ${install.join(' ')} ended with ${status}`);
  const start = `import Fastify from ${JSON.stringify(join(folder, 'node_modules/fastify/fastify.js'))};
const fastify = Fastify();
`;
  const main = `
fastify.get('/', async ({ identity: i }) => [i.uid, i.app, i.acc, i.role].join(' '));
console.log((await fastify.inject('/')).statusCode);
console.log((await fastify.inject({ url: '/', headers: ${JSON.stringify(headers)} })).body);
`;
  const text = start + readSnippet(page, 'js', 'fastify.addHook') + main;
  return { file: 'main.mjs', text, command: process.execPath, args: [] };
}

function goProgram(): Program | undefined {
  if (!hasCommand('go', 'version')) return undefined;
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
  const text = `package main\n${imports}${readSnippet(page, 'go', 'WithIdentity')}${main}`;
  return { file: 'main.go', text, command: 'go', args: ['run'] };
}

async function djangoProgram(): Promise<Program | undefined> {
  const python = await installPython();
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
  const text = readSnippet(page, 'python', 'get_response') + main;
  return python === undefined ? undefined : { file: 'main.py', text, command: python, args: [] };
}

async function springProgram(): Promise<Program | undefined> {
  const classPath = await installJava();
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
  const text = imports.join('') + main + readSnippet(page, 'java', 'OncePerRequestFilter');
  return classPath === undefined ? undefined : { file: 'Main.java', text, command: 'java', args: ['-cp', classPath] };
}

let failed = false;
const folder = await mkdtemp(join(tmpdir(), 'account-authz-middleware-'));
for (const [framework, make] of Object.entries(frameworks)) {
  const program = await make();
  if (program === undefined) {
    console.log(`${framework} is left out: this machine does not have it`);
    continue;
  }
  const file = join(folder, program.file);
  await writeFile(file, program.text);
  const { stdout, stderr } = spawnSync(program.command, [...program.args, file], { cwd: folder, encoding: 'utf8' });
  const works = stdout === expected;
  failed ||= !works;
  console.log(`${framework}: ${works ? 'works' : `printed ${JSON.stringify(stdout)}\n${stderr}`}`);
}
await rm(folder, { recursive: true });
process.exit(failed ? 1 : 0);
